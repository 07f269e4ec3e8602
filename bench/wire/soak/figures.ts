/** What the samples of the soak test say: a table, and what is wrong. */
import { trend } from '../../statistics.ts'
import type { Holding } from './server.ts'

const MiB = 1_048_576

export interface Sample {
  readonly minute: number
  readonly holding: Holding
  /** Connections that clients have open. */
  readonly open: number
}

/** What may be grown: what is seen of a log that turns over its segments, and of an allocator. */
const ALLOWED: readonly (readonly [name: string, of: (each: Holding) => number, bytes: number])[] = [
  ['heap', ({ heapBytes }) => heapBytes, 2 * MiB],
  ['buffers', ({ bufferBytes }) => bufferBytes, 16 * MiB],
  ['resident memory', ({ residentBytes }) => residentBytes, 64 * MiB],
]
/** Fewer samples say nothing. */
const LEAST = 10

export const HEAD = '  minute  heap MiB  buffers MiB  resident MiB  timers  handles  connections'

export function line({ minute, holding }: Sample): string {
  const { heapBytes, bufferBytes, residentBytes, timers, handles, connections } = holding
  const sizes = [heapBytes, bufferBytes, residentBytes].map((bytes) => (bytes / MiB).toFixed(1))
  const cells = [minute.toFixed(1), ...sizes, timers, handles, connections]
  const widths = [8, 10, 13, 14, 8, 9, 13]
  return cells.map((cell, column) => String(cell).padStart(widths[column] as number)).join('')
}

/** Everything that is not as it should be, for people. */
export function problemsOf(samples: readonly Sample[]): string[] {
  const watched = samples.slice(Math.floor(samples.length / 3))
  if (watched.length < LEAST) return [`${watched.length} samples are too few to tell; it takes ${LEAST}`]
  return [...growth(watched), ...leaks(watched)]
}

function growth(watched: readonly Sample[]): string[] {
  const problems: string[] = []
  const minutes = (watched.at(-1)?.minute ?? 0) - (watched[0]?.minute ?? 0)
  for (const [name, of, allowed] of ALLOWED) {
    const { slope, error } = trend(watched.map(({ minute, holding }) => [minute, of(holding)] as const))
    const grown = slope * minutes
    const noise = 2 * error * minutes
    const text = `${name}: ${(grown / MiB).toFixed(2)} MiB grown in ${minutes.toFixed(1)} minutes, ± ${(noise / MiB).toFixed(2)}, ${allowed / MiB} allowed`
    console.log(text)
    if (grown - noise > allowed) problems.push(`grows: ${text}`)
  }
  return problems
}

function leaks(watched: readonly Sample[]): string[] {
  const problems: string[] = []
  const half = Math.floor(watched.length / 2)
  const timers = (part: readonly Sample[]): number => Math.max(...part.map(({ holding }) => holding.timers))
  const [before, after] = [timers(watched.slice(0, half)), timers(watched.slice(half))]
  if (after > before + 1) problems.push(`${after} timers, and ${before} before`)
  for (const { minute, holding, open } of watched) {
    const { connections, errors } = holding
    if (connections > open) {
      problems.push(`minute ${minute.toFixed(1)}: ${connections} connections, and clients have ${open}`)
    }
    if (errors > 0) return [...problems, `the server logged ${errors} errors`]
  }
  return problems
}
