/**
 * Reads the journal back after whatever happened: which groups are there, in order, and how they end.
 *
 *   clean     nothing, zeros, or a stale group where the next one should be
 *   torn      something else is there, and nothing says that it was ever synced: a write that a crash cut off
 *   corrupt   a group cannot be read though a later one proves that it was on the disk: the disk lost it
 *
 * A later group is proof if it says so (`synced`), and if it is in the other file, since a file is synced whole before
 * its successor is written. Without proof, groups behind a torn one do not count either: what survives is a prefix.
 *
 * Nothing is believed before its CRC held, header first; beyond damage, each place that begins like a group is tried,
 * which costs a look at every byte and the CRC of what really is a group. Both files are in memory for that, and stay
 * there as long as their groups do.
 */
import { OdradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { type FileSystem, isMissing } from './fs.ts'
import type { Entry, GroupHeader } from './group.ts'
import { findMagic, GROUP_HEADER_BYTES, isWhole, readEntries, readGroupHeader } from './group.ts'
import { JOURNAL_FILES, MAX_FILE_BYTES } from './journal.ts'

export interface Group extends GroupHeader {
  readonly file: string
  readonly position: number
  /** Batches are views of the file's bytes. */
  readonly entries: readonly Entry[]
}

export type JournalTail =
  | { readonly kind: 'clean' }
  /** `sizeBytes`: from `position` to the last byte that is not zero. */
  | { readonly kind: 'torn'; readonly file: string; readonly position: number; readonly sizeBytes: number }
  | { readonly kind: 'corrupt'; readonly file: string; readonly position: number; readonly why: string }

export interface JournalContent {
  /**
   * In the order of their sequences, without a gap, up to where the journal ends or is damaged. Entries are parsed as
   * they are asked for, which throws CORRUPT_LOG where they are nonsense though the CRC holds.
   */
  readonly groups: Iterable<Group>
  /** The sequence to go on with: above every one that is found in the files, valid or not. */
  readonly next: number
  readonly tail: JournalTail
  /** Where there is something that does not count, torn or damaged, or behind that. */
  readonly rest: readonly JournalRest[]
}

/** A part of a file, up to the last byte that is not zero. */
export interface JournalRest {
  readonly file: string
  readonly position: number
  readonly sizeBytes: number
}

interface Scanned {
  readonly path: string
  readonly bytes: Uint8Array
  /** Where the run of groups from the beginning of the file ends. */
  readonly end: number
  readonly groups: readonly Found[]
  /** The highest sequence of any header. */
  readonly newest: number
}

interface Found extends GroupHeader {
  readonly in: Scanned
  readonly position: number
}

interface Place {
  readonly in: Scanned
  readonly position: number
}

/**
 * The groups after sequence `after`.
 * @throws OdradekError STORAGE_ERROR when a file cannot be read, CORRUPT_LOG when one is larger than any can be.
 */
export async function readJournal(fs: FileSystem, after: number, crc32c: Crc32c): Promise<JournalContent> {
  const files: Scanned[] = []
  for (const path of JOURNAL_FILES) files.push(scan(path, await readFile(fs, path), after, crc32c))
  const found = files.flatMap(({ groups }) => groups).sort((one, two) => one.sequence - two.sequence)
  const chain: Found[] = []
  const beyond: Found[] = []
  for (const group of found) (group.sequence === after + 1 + chain.length ? chain : beyond).push(group)
  const missing = after + 1 + chain.length
  const tail = tailOf(files, chain.at(-1), beyond, missing, crc32c)
  // Also a group that cannot be read has used up its sequence: the disk may find it again.
  const newest = Math.max(tail.kind === 'clean' ? after : missing, ...files.map((file) => file.newest))
  return {
    groups: { [Symbol.iterator]: () => parsed(chain) },
    next: newest + 1,
    tail,
    rest: files.flatMap((file) => restOf(file, tail, beyond)),
  }
}

async function readFile(fs: FileSystem, path: string): Promise<Uint8Array> {
  try {
    const file = await fs.open(path, 'read')
    try {
      const sizeBytes = await file.size()
      if (sizeBytes > MAX_FILE_BYTES) {
        throw new OdradekError('CORRUPT_LOG', `${path} has ${sizeBytes} bytes, more than a journal can have`)
      }
      const bytes = new Uint8Array(sizeBytes)
      return bytes.subarray(0, await file.read(bytes, 0))
    } finally {
      await file.close()
    }
  } catch (error) {
    if (isMissing(error)) return new Uint8Array(0)
    throw error
  }
}

/** All that can be read of a file and is newer than `after`. */
function scan(path: string, bytes: Uint8Array, after: number, crc32c: Crc32c): Scanned {
  const groups: Found[] = []
  const scanned = { path, bytes, end: -1, groups, newest: 0 }
  let at = 0
  while (at >= 0) {
    const header = readGroupHeader(bytes, at, crc32c)
    if (header !== undefined) scanned.newest = Math.max(scanned.newest, header.sequence)
    // Beyond the end lie whole turns of stale groups, which are not worth their CRC.
    const wanted = header !== undefined && (header.sequence > after || scanned.end < 0)
    if (wanted && isWhole(bytes, at, header, crc32c)) {
      if (header.sequence > after) groups.push({ ...header, in: scanned, position: at })
      at += header.sizeBytes
    } else {
      if (scanned.end < 0) scanned.end = at
      at = findMagic(bytes, at + 1)
    }
  }
  return scanned
}

/** How it ends before group `missing`, which is nowhere. `beyond`: what was found in spite of that. */
function tailOf(
  files: readonly Scanned[],
  last: Found | undefined,
  beyond: readonly Found[],
  missing: number,
  crc32c: Crc32c,
): JournalTail {
  const places = files.map((file): Place => {
    if (last === undefined) return { in: file, position: file.end }
    return { in: file, position: file === last.in ? last.position + last.sizeBytes : 0 }
  })
  // It would have followed the last one, or begun the other file.
  if (last?.in === files[1]) places.reverse()
  const damage = places.find((place) => isDirty(place, missing, crc32c)) ?? beyond[0]
  if (damage === undefined) return { kind: 'clean' }
  const { in: file, position } = damage
  const proof = beyond.find((group) => proves(group, missing, file))
  if (proof === undefined) {
    return { kind: 'torn', file: file.path, position, sizeBytes: contentEnd(file.bytes) - position }
  }
  const { sequence, in: other, position: at } = proof
  const why = `group ${missing} cannot be read, but was on the disk: group ${sequence} shows that, in ${other.path} at ${at}`
  return { kind: 'corrupt', file: file.path, position, why }
}

function proves(later: Found, missing: number, file: Scanned): boolean {
  return later.synced >= missing || later.in !== file
}

/** Whether something is there that neither is the end of the journal nor was there before group `missing`. */
function isDirty(place: Place, missing: number, crc32c: Crc32c): boolean {
  const { in: file, position } = place
  const head = file.bytes.subarray(position, position + GROUP_HEADER_BYTES)
  if (head.every((byte) => byte === 0)) return false
  const header = readGroupHeader(file.bytes, position, crc32c)
  return header === undefined || header.sequence >= missing
}

function restOf(file: Scanned, tail: JournalTail, beyond: readonly Found[]): JournalRest[] {
  const positions = beyond.filter((group) => group.in === file).map(({ position }) => position)
  if (tail.kind !== 'clean' && tail.file === file.path) positions.push(tail.position)
  if (positions.length === 0) return []
  const position = Math.min(...positions)
  return [{ file: file.path, position, sizeBytes: contentEnd(file.bytes) - position }]
}

/** Where the zeros begin that the file ends with. */
function contentEnd(bytes: Uint8Array): number {
  return bytes.findLastIndex((byte) => byte !== 0) + 1
}

function* parsed(chain: readonly Found[]): Generator<Group> {
  for (const { in: file, position, ...header } of chain) {
    yield {
      ...header,
      file: file.path,
      position,
      entries: readEntries(file.bytes, position, header, file.path),
    }
  }
}
