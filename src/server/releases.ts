/**
 * Which version of each API releases of Apache Kafka speak at most; −1 where they do not have it. A server can be told
 * to be one of them, so that a client's ways with an older broker can be tested. The least version is always ours.
 * Source: Kafka's message definitions at those releases.
 */
export const RELEASES = ['0.11', '1.0', '2.0', '2.8', '3.9', '4.1'] as const
/** One of `RELEASES`. */
export type Release = (typeof RELEASES)[number]

/** By key; then a column for each release. */
const MAX_VERSIONS: readonly (readonly [key: number, ...versions: number[]])[] = [
  [0, 3, 5, 6, 9, 11, 13],
  [1, 5, 6, 8, 12, 17, 18],
  [2, 2, 2, 3, 6, 9, 10],
  [3, 4, 5, 6, 11, 12, 13],
  [8, 3, 3, 4, 8, 9, 9],
  [9, 3, 3, 4, 7, 9, 9],
  [10, 1, 1, 2, 3, 6, 6],
  [11, 2, 2, 3, 7, 9, 9],
  [12, 1, 1, 2, 4, 4, 4],
  [13, 1, 1, 2, 4, 5, 5],
  [14, 1, 1, 2, 5, 5, 5],
  [15, 1, 1, 2, 5, 5, 6],
  [16, 1, 1, 2, 4, 5, 5],
  [17, 0, 1, 1, 1, 1, 1],
  [18, 1, 1, 2, 3, 4, 4],
  [19, 2, 2, 3, 7, 7, 7],
  [20, 1, 1, 2, 6, 6, 6],
  [21, 0, 0, 1, 2, 2, 2],
  [22, 0, 0, 1, 4, 5, 5],
  [23, 0, 0, 1, 4, 4, 4],
  [24, 0, 0, 1, 3, 5, 5],
  [25, 0, 0, 1, 3, 4, 4],
  [26, 0, 0, 1, 3, 4, 5],
  [28, 0, 0, 1, 3, 4, 5],
  [29, 0, 0, 1, 2, 3, 3],
  [30, 0, 0, 1, 2, 3, 3],
  [31, 0, 0, 1, 2, 3, 3],
  [32, 0, 0, 2, 4, 4, 4],
  [33, 0, 0, 1, 2, 2, 2],
  [35, -1, 0, 1, 2, 4, 4],
  [36, -1, 0, 0, 2, 2, 2],
  [37, -1, 0, 1, 3, 3, 3],
  [42, -1, -1, 1, 2, 2, 2],
  [43, -1, -1, -1, 2, 2, 2],
  [44, -1, -1, -1, 1, 1, 1],
  [45, -1, -1, -1, 0, 0, 1],
  [46, -1, -1, -1, 0, 0, 0],
  [47, -1, -1, -1, 0, 0, 0],
  [48, -1, -1, -1, 1, 1, 1],
  [49, -1, -1, -1, 1, 1, 1],
  [50, -1, -1, -1, 0, 0, 0],
  [51, -1, -1, -1, 0, 0, 0],
  [57, -1, -1, -1, 0, 1, 2],
  [60, -1, -1, -1, 0, 1, 2],
  [61, -1, -1, -1, 0, 0, 0],
  [65, -1, -1, -1, -1, 0, 0],
  [66, -1, -1, -1, -1, 1, 2],
  [68, -1, -1, -1, -1, 0, 1],
  [69, -1, -1, -1, -1, 0, 1],
  [74, -1, -1, -1, -1, 0, 1],
  [75, -1, -1, -1, -1, 0, 0],
  [76, -1, -1, -1, -1, -1, 1],
  [77, -1, -1, -1, -1, -1, 1],
  [78, -1, -1, -1, -1, -1, 1],
  [79, -1, -1, -1, -1, -1, 1],
  [90, -1, -1, -1, -1, -1, 0],
  [91, -1, -1, -1, -1, -1, 0],
  [92, -1, -1, -1, -1, -1, 0],
]

/** By key: the last version that a release has. What it does not have is not in there. */
export function maxVersionsOf(release: Release): ReadonlyMap<number, number> {
  const column = RELEASES.indexOf(release)
  return new Map(
    MAX_VERSIONS.map(([key, ...versions]): [number, number] => [key, versions[column] ?? -1]).filter(
      ([, version]) => version >= 0,
    ),
  )
}
