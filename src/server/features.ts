/**
 * Features of a cluster (KIP-584): what clients look at to choose between an old and a new way of doing things. Levels
 * are those of Apache Kafka 4; one is on where the APIs that it is about are handled.
 */
export interface Feature {
  readonly name: string
  readonly minVersion: number
  readonly maxVersion: number
  /** Keys of the APIs without which it is off. */
  readonly needs: readonly number[]
}

const FEATURES: readonly Feature[] = [
  // 3.3-IV3 to 4.0-IV3.
  { name: 'metadata.version', minVersion: 7, maxVersion: 25, needs: [] },
  // 2: transactions whose partitions the broker adds by itself, and whose epoch grows with each of them (KIP-890).
  { name: 'transaction.version', minVersion: 0, maxVersion: 2, needs: [22, 24, 25, 26, 28] },
  // 1: consumer groups whose partitions the broker assigns (KIP-848).
  { name: 'group.version', minVersion: 0, maxVersion: 1, needs: [68, 69] },
]

/** Those that are on where APIs of these keys are handled. */
export function featuresOf(keys: readonly number[]): Feature[] {
  return FEATURES.filter(({ needs }) => needs.every((key) => keys.includes(key)))
}
