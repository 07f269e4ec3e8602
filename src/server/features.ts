/**
 * Features of a cluster (KIP-584): what clients look at to choose between an old and a new way of doing things. Levels
 * are those of Apache Kafka 4; one is on where the APIs that it is about are handled.
 */
import type { Handler } from './handler.ts'

export interface Feature {
  readonly name: string
  readonly minVersion: number
  readonly maxVersion: number
  /** Keys of the APIs without which it is off, and the least version of each. */
  readonly needs: readonly (readonly [key: number, version: number])[]
}

const FEATURES: readonly Feature[] = [
  // 3.3-IV3 to 4.0-IV3.
  { name: 'metadata.version', minVersion: 7, maxVersion: 25, needs: [[18, 4]] },
  // 2: transactions whose partitions the broker adds by itself, and whose epoch grows with each of them (KIP-890).
  {
    name: 'transaction.version',
    minVersion: 0,
    maxVersion: 2,
    needs: [
      [22, 5],
      [24, 5],
      [25, 4],
      [26, 5],
      [28, 5],
    ],
  },
  // 1: consumer groups whose partitions the broker assigns (KIP-848).
  {
    name: 'group.version',
    minVersion: 0,
    maxVersion: 1,
    needs: [
      [68, 1],
      [69, 1],
    ],
  },
]

/** Those that are on where these are all handlers. */
export function featuresOf(handlers: readonly Handler[]): Feature[] {
  const versions = new Map(handlers.map(({ api, advertised: [, max] }) => [api.key, max]))
  return FEATURES.filter(({ needs }) => needs.every(([key, version]) => (versions.get(key) ?? -1) >= version))
}
