/**
 * What benches of the file engine share: directories of their own (below `TMPDIR`, which says on which disk), records of
 * 100 bytes that say who they are, and a broker that has written a given number of bytes.
 */
import { strict as assert } from 'node:assert'
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Broker, type OpenOptions, openBroker, type TopicHandle, type TopicOptions } from 'odradek'

export const RECORD_BYTES = 100
/** Different records; the i-th of a run is number i modulo this. */
export const KINDS = 1_024

/** A directory that nobody else has. */
export function freshDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'odradek-bench-'))
}

export function removeDirectory(path: string): void {
  rmSync(path, { recursive: true, force: true })
}

/**
 * The directory as a process leaves it that is killed now: all that was accepted is in the journal, and no broker was
 * closed. Without the lock, whose owner still lives.
 */
export function crashImage(path: string): string {
  const image = freshDirectory()
  cpSync(path, image, { recursive: true, filter: (from) => !basename(from).startsWith('lock.') })
  return image
}

/** Bytes of the files below `path` whose path ends like that. */
export function bytesOf(path: string, suffix: string): number {
  let sizeBytes = 0
  for (const name of readdirSync(path, { recursive: true }) as string[]) {
    if (name.endsWith(suffix)) sizeBytes += statSync(join(path, name)).size
  }
  return sizeBytes
}

/** Record number `i`, `sizeBytes` long. */
export function recordOf(i: number, sizeBytes: number = RECORD_BYTES): Uint8Array {
  const bytes = new Uint8Array(sizeBytes).fill(97)
  bytes[0] = i >> 8
  bytes[1] = i
  return bytes
}

export function numberOf(value: unknown): number {
  const bytes = value as Uint8Array
  return ((bytes[0] as number) << 8) | (bytes[1] as number)
}

/** Every kind of record once. */
export function allRecords(sizeBytes: number = RECORD_BYTES): readonly Uint8Array[] {
  return Array.from({ length: KINDS }, (_, i) => recordOf(i, sizeBytes))
}

export const UNBOUNDED = { records: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER } as const

const nothing = (): void => {}
/** Says nothing of what recovery found: benches make such findings on purpose. */
export const quiet = { debug: nothing, info: nothing, warn: nothing, error: console.error } as const

export interface Files {
  readonly directory: string
  readonly broker: Broker
  readonly topic: TopicHandle<Uint8Array>
}

/** A broker on a directory of its own, with one topic. */
export async function openFiles(
  options: OpenOptions,
  topicOptions: TopicOptions<Uint8Array> = {},
): Promise<Files> {
  const directory = freshDirectory()
  const broker = await openBroker(`file:${directory}`, { logger: quiet, ...options })
  const topic = await broker.createTopic<Uint8Array>('orders', topicOptions)
  return { directory, broker, topic }
}

export async function closeFiles({ broker, directory }: Files): Promise<void> {
  await broker.close()
  removeDirectory(directory)
}

/** Publishes records `from` to `to`, as fast as they are taken, and resolves when all are accepted. */
export async function publishBurst(
  topic: TopicHandle<Uint8Array>,
  records: readonly Uint8Array[],
  from: number,
  to: number,
): Promise<void> {
  for (let i = from; i < to - 1; i++) {
    const value = records[i % records.length] as Uint8Array
    if (topic.tryPublish(value) === undefined) await topic.publish(value)
  }
  // Groups are accepted in order, so the last one says it for all.
  await topic.publish(records[(to - 1) % records.length] as Uint8Array)
}

/** All that is retained of partition 0: whole, in order, and what it should be. */
export async function checkRetained({ broker, topic }: Files): Promise<void> {
  const [partition] = topic.describe().partitions
  assert(partition !== undefined)
  const { start, end } = partition
  const PAGE = 65_536
  for (let at = start; at < end; at += PAGE) {
    const records = await broker.read('orders', 0, at, Math.min(at + PAGE, end))
    for (const [i, { offset, value }] of records.entries()) {
      assert.equal(offset, at + i)
      assert.equal(numberOf(value), offset % KINDS)
    }
    assert.equal(records.length, Math.min(PAGE, end - at))
  }
}
