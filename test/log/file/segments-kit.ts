/** A log's segments on a simulated disk, beside a plain list of the batches that must be in them. */
import type { StoredSegment } from '../../../src/log/file/checkpoint.ts'
import { FilePool } from '../../../src/log/file/file-pool.ts'
import type { FileSystem } from '../../../src/log/file/fs.ts'
import type { Segment } from '../../../src/log/file/segment.ts'
import { type Finding, verifySegments } from '../../../src/log/file/segment-check.ts'
import { Segments, type SegmentsOptions } from '../../../src/log/file/segments.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { readHeader } from '../../../src/log/format/record-batch.ts'
import { BatchScan } from '../../../src/log/format/scan.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { joined } from './batches.ts'

export const DIRECTORY = 'logs/t-0'

export interface Options extends Partial<Omit<SegmentsOptions, 'fs' | 'pool' | 'crc32c' | 'log'>> {}

export function optionsOf(fs: FileSystem, options: Options = {}): SegmentsOptions {
  const log = { topicId: 't', partition: 0 }
  return { start: 0, segmentBytes: 1_000_000, ...options, fs, pool: new FilePool(fs), crc32c, log }
}

export function openSegments(
  fs: FileSystem,
  stored: readonly StoredSegment[] = [],
  options: Options = {},
): Promise<Segments> {
  return Segments.restore(optionsOf(fs, options), stored)
}

/** Leaves an index of the active segment on the disk, however little it has grown since it was saved last. */
export async function saveIndex(segments: Segments): Promise<void> {
  await (segments.list.at(-1) as Segment | undefined)?.saveIndex()
}

export function logPath(base: number): string {
  return `${DIRECTORY}/${String(base).padStart(20, '0')}.log`
}

export function indexPath(base: number): string {
  return `${DIRECTORY}/${String(base).padStart(20, '0')}.index`
}

/** Batches that follow each other, as one append. */
export async function append(segments: Segments, ...batches: readonly Uint8Array[]): Promise<void> {
  const first = readHeader(batches[0] as Uint8Array, 0)
  await segments.append([joined(batches)], {
    base: first.baseOffset,
    next: nextOf(batches.at(-1) as Uint8Array),
  })
}

export function baseOf(batch: Uint8Array): number {
  return readHeader(batch, 0).baseOffset
}

export function nextOf(batch: Uint8Array): number {
  const { baseOffset, lastOffsetDelta } = readHeader(batch, 0)
  return baseOffset + lastOffsetDelta + 1
}

/** The batches that bytes hold, as hexadecimal, so that tests print them. */
export function split(bytes: Uint8Array): string[] {
  const batches: string[] = []
  for (const scan = new BatchScan().start(bytes); scan.next(); ) {
    batches.push(hex(bytes.subarray(scan.position, scan.position + scan.sizeBytes)))
  }
  return batches
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** All that is read from `offset` to the end, `maxBytes` at a time. */
export async function readAll(segments: Segments, offset: number, maxBytes = 1_000_000): Promise<string[]> {
  const batches: string[] = []
  for (let at = offset; at < segments.next; ) {
    const { bytes, next } = await segments.read(at, maxBytes)
    batches.push(...split(bytes))
    if (next <= at) throw new Error(`a read at ${at} goes on at ${next}`)
    at = next
  }
  return batches
}

/** What a read did: batches, or the code and the text of its error. */
export async function outcome(
  read: Promise<{ readonly bytes: Uint8Array }>,
): Promise<string[] | OdradekError> {
  try {
    return split((await read).bytes)
  } catch (error) {
    if (error instanceof OdradekError) return error
    throw error
  }
}

export async function verify(
  fs: FileSystem,
  stored: readonly StoredSegment[],
  start = 0,
): Promise<Finding[]> {
  const findings: Finding[] = []
  for await (const finding of verifySegments({ ...optionsOf(fs), start }, stored)) findings.push(finding)
  return findings
}
