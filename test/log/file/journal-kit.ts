/** What the tests of the journal share: groups that can be told apart, and what is read back as plain data. */
import type { FileSystem } from '../../../src/log/file/fs.ts'
import {
  type Entry,
  type EntryVisitor,
  entryEnd,
  GROUP_HEADER_BYTES,
  GroupBuilder,
  type GroupHeader,
  type LogId,
  LogIds,
  seeded,
  visitEntry,
} from '../../../src/log/file/group.ts'
import { JOURNAL_FILES, type Journal } from '../../../src/log/file/journal.ts'
import { walkEntries } from '../../../src/log/file/journal-entries.ts'
import type { Group, JournalTail } from '../../../src/log/file/journal-reader.ts'
import { readJournal } from '../../../src/log/file/journal-reader.ts'
import { crc32c as plain } from '../../../src/log/format/crc32c.ts'
import { SimFs } from '../../support/sim-fs.ts'

export const [A, B] = JOURNAL_FILES
/** As an engine has it: started from a number that publishers do not know. */
export const crc32c = seeded(plain, 0x9e3779b9)

export const LOG: LogId = { topicId: 'tt', partition: 3 }

/** Bytes that follow from the sequence and differ from those of any other: no zeros, no magic. */
export function payloadOf(sequence: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes)
  for (let i = 0; i < sizeBytes; i++) bytes[i] = 0x80 | ((sequence * 31 + i * 7 + (i >> 5)) & 0x3f)
  return bytes
}

/** A group of one batch, which takes `sizeBytes` in all. */
export function group(sequence: number, sizeBytes: number, synced = sequence - 1): readonly Uint8Array[] {
  const builder = new GroupBuilder()
  builder.batch(LOG, new Uint8Array(0))
  builder.batch(LOG, payloadOf(sequence, sizeBytes - 2 * builder.sizeBytes + 32))
  return builder.finish(sequence, synced, crc32c)
}

export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(pieces))
}

/** The same, in one piece. */
export function groupBytes(sequence: number, sizeBytes: number, synced = sequence - 1): Uint8Array {
  return joined(group(sequence, sizeBytes, synced))
}

/** A file that begins with the parts, and is zero up to `sizeBytes`. */
export function fileOf(sizeBytes: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(sizeBytes)
  bytes.set(joined(parts))
  return bytes
}

/** The entries of the whole group at `at`; throws where one is none. */
export function entriesIn(bytes: Uint8Array, at: number, header: GroupHeader): Entry[] {
  const entries: Entry[] = []
  const visitor = collectorOf(entries)
  const end = at + header.sizeBytes
  const ids = new LogIds()
  for (let from = at + GROUP_HEADER_BYTES; from < end; ) {
    const next = entryEnd(bytes, from)
    if (next > end || !visitEntry(bytes, from, next, from, ids, visitor))
      throw new Error(`no entry at ${from}`)
    from = next
  }
  return entries
}

/** Notes what it is told, batches in memory of their own. */
function collectorOf(entries: Entry[]): EntryVisitor {
  return {
    batch: (log, bytes, from, end) => entries.push({ kind: 'batch', log, bytes: bytes.slice(from, end) }),
    meta: (changes) => entries.push({ kind: 'meta', changes }),
    start: (log, offset) => entries.push({ kind: 'start', log, offset }),
    delete: (log) => entries.push({ kind: 'delete', log }),
  }
}

/** The entries of groups that were found. */
export async function entriesOf(
  fs: FileSystem,
  groups: readonly Group[],
  windowBytes?: number,
): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const _ of walkEntries(fs, groups, collectorOf(entries), windowBytes));
  return entries
}

export interface Read {
  readonly sequences: readonly number[]
  readonly tail: JournalTail
  readonly next: number
}

/** Every other one is the usual one; a window that nothing fits into costs a read a byte, so it has its turn now and then. */
const WINDOWS = [1, 37, 128, 37, 128, 37, 128, 300].flatMap((windowBytes) => [windowBytes, undefined])
let turn = 0

/** Reads, and checks that each group holds what `group` put into it. The window is another one each time. */
export async function read(fs: FileSystem, after = 0): Promise<Read> {
  const windowBytes = WINDOWS[turn++ % WINDOWS.length]
  const { groups, next, tail } = await readJournal(fs, after, crc32c, windowBytes)
  const sequences: number[] = []
  for (const each of groups) {
    const { sequence, sizeBytes } = each
    sequences.push(sequence)
    const payload = ((await entriesOf(fs, [each], windowBytes)).at(-1) as Extract<Entry, { kind: 'batch' }>)
      .bytes
    const written = payloadOf(sequence, payload.length)
    if (sizeBytes !== 56 + payload.length || !Buffer.from(written).equals(payload)) {
      throw new Error(`group ${sequence} changed`)
    }
  }
  return { sequences, next, tail }
}

export async function append(journal: Journal, ...groups: readonly (readonly Uint8Array[])[]): Promise<void> {
  for (const pieces of groups) await journal.append(pieces)
}

export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

export const CLEAN = { kind: 'clean' }
/** Of a few groups. */
export const SIZES = [70, 131, 90, 64 + 32, 117]
export const FILE_BYTES = 700

export interface Placed {
  readonly sequence: number
  readonly synced: number
  readonly position: number
  readonly sizeBytes: number
}

/** Groups of different sizes, end to end from the beginning of a file. */
export function laidOut(
  first: number,
  sizes: readonly number[],
  syncedOf: (sequence: number) => number,
): Placed[] {
  let position = 0
  return sizes.map((sizeBytes, i) => {
    const placed = { sequence: first + i, synced: syncedOf(first + i), position, sizeBytes }
    position += sizeBytes
    return placed
  })
}

export function bytesOf(groups: readonly Placed[]): Uint8Array {
  return joined(groups.map(({ sequence, sizeBytes, synced }) => groupBytes(sequence, sizeBytes, synced)))
}

export function diskOf(a: Uint8Array | undefined, b: Uint8Array | undefined): SimFs {
  const fs = new SimFs()
  if (a !== undefined) fs.put(A, a)
  if (b !== undefined) fs.put(B, b)
  return fs
}
