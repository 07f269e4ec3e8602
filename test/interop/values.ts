/** Records of trials: numbered values under ten keys, in one topic. */
import type { Broker } from '../../src/broker.ts'
import type { Driver } from './driver.ts'
import type { Trial } from './trial.ts'

export const TOPIC = 'orders'

/** What a driver has to add so that its client sends a record at once. */
const PADDING = /~+$/

export function text(value: unknown): string {
  const said = value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)
  return said.replace(PADDING, '')
}

/** Publishes records `from` to `to`, by key. */
export async function publish(broker: Broker, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await broker.publish(TOPIC, `v${i}`, { key: `k${i % 10}` })
}

export function all(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => `v${from + i}`)
}

export function valuesOf(drivers: readonly Driver[]): string[] {
  return drivers.flatMap(({ records }) => records.map(({ value }) => value ?? ''))
}

/** Sum of the ends of all partitions. */
export function ended(broker: Broker): number {
  return broker.describe(TOPIC).partitions.reduce((sum, { high }) => sum + high, 0)
}

export async function untilProduced({ drivers, broker }: Trial, count: number): Promise<void> {
  await drivers.until(`${count} records`, () => ended(broker) >= count)
}

/** Until each of the records was seen by some of these members. */
export async function untilAllSeen(
  { drivers }: Trial,
  members: readonly Driver[],
  from: number,
  to: number,
): Promise<void> {
  const wanted = all(from, to)
  await drivers.until(`records ${from} to ${to} at the members`, () => {
    const seen = new Set(valuesOf(members))
    return wanted.every((value) => seen.has(value))
  })
}

/** Reads a partition without a group, to `count` records. */
export async function reads(trial: Trial, from: object, count: number): Promise<Driver> {
  return trial.did('read', { topic: TOPIC, partition: 0, count, ...from })
}
