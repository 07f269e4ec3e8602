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
 * which costs a look at every byte and the CRC of what really is a group. Files are read through a window, in the order of
 * their bytes: what is kept of a group is where it is (journal-entries.ts reads it again).
 */
import { OdradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { closeAll } from './close-all.ts'
import { FileWindow, WINDOW_BYTES } from './file-window.ts'
import type { FileSystem } from './fs.ts'
import {
  bodyCrc,
  findMagic,
  GROUP_HEADER_BYTES,
  type GroupHeader,
  MAGIC_BYTES,
  readGroupHeader,
} from './group.ts'
import { JOURNAL_FILES, MAX_FILE_BYTES } from './journal.ts'

export interface Group extends GroupHeader {
  readonly file: string
  readonly position: number
}

export type JournalTail =
  | { readonly kind: 'clean' }
  /** `sizeBytes`: from `position` to the last byte that is not zero. */
  | { readonly kind: 'torn'; readonly file: string; readonly position: number; readonly sizeBytes: number }
  | { readonly kind: 'corrupt'; readonly file: string; readonly position: number; readonly why: string }

export interface JournalContent {
  /** In the order of their sequences, without a gap, up to where the journal ends or is damaged. */
  readonly groups: readonly Group[]
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

interface Place {
  readonly in: JournalScan
  readonly position: number
}

/**
 * The groups after sequence `after`. `windowBytes`: what is read at once.
 * @throws OdradekError STORAGE_ERROR when a file cannot be read, CORRUPT_LOG when one is larger than any can be.
 */
export async function readJournal(
  fs: FileSystem,
  after: number,
  crc32c: Crc32c,
  windowBytes: number = WINDOW_BYTES,
): Promise<JournalContent> {
  const files: JournalScan[] = []
  try {
    for (const path of JOURNAL_FILES) {
      const scan = new JournalScan(await FileWindow.open(fs, path, windowBytes), after, crc32c)
      files.push(scan)
      await scan.run()
    }
    return await contentOf(files, after)
  } finally {
    await closeAll(files.map((file) => () => file.window.close()))
  }
}

async function contentOf(files: readonly JournalScan[], after: number): Promise<JournalContent> {
  const found = files.flatMap(({ groups }) => groups).sort((one, two) => one.sequence - two.sequence)
  const groups: Group[] = []
  const beyond: Group[] = []
  for (const group of found) (group.sequence === after + 1 + groups.length ? groups : beyond).push(group)
  const missing = after + 1 + groups.length
  const tail = await tailOf(files, groups.at(-1), beyond, missing)
  // Also a group that cannot be read has used up its sequence: the disk may find it again.
  const newest = Math.max(tail.kind === 'clean' ? after : missing, ...files.map((file) => file.newest))
  const rest: JournalRest[] = []
  for (const file of files) rest.push(...(await restOf(file, tail, beyond)))
  return { groups, next: newest + 1, tail, rest }
}

/** Goes over one file. */
class JournalScan {
  readonly window: FileWindow
  /** What can be read and is newer than `after`. */
  readonly groups: Group[] = []
  /** Where the run of groups from the beginning of the file ends. */
  end: number = -1
  /** The highest sequence of any header. */
  newest: number = 0
  readonly #after: number
  readonly #crc32c: Crc32c

  constructor(window: FileWindow, after: number, crc32c: Crc32c) {
    this.window = window
    this.#after = after
    this.#crc32c = crc32c
  }

  get path(): string {
    return this.window.path
  }

  async run(): Promise<void> {
    const { window } = this
    if (window.sizeBytes > MAX_FILE_BYTES) {
      const what = `${this.path} has ${window.sizeBytes} bytes, more than a journal can have`
      throw new OdradekError('CORRUPT_LOG', what)
    }
    for (let at = 0; at >= 0; ) {
      if (!window.shows(at, at + GROUP_HEADER_BYTES)) await window.move(at, at + GROUP_HEADER_BYTES)
      const header = readGroupHeader(window.bytes, at - window.at, this.#crc32c)
      const whole = header !== undefined && this.#isWhole(at, header)
      if (header !== undefined && (whole === true || (await whole))) {
        const { sequence, synced, sizeBytes } = header
        const group = { sequence, synced, sizeBytes, file: this.path, position: at }
        if (sequence > this.#after) this.groups.push(group)
        at += sizeBytes
      } else {
        if (this.end < 0) this.end = at
        at = await this.#next(at + 1)
      }
    }
  }

  /** Whether all of the group is there, as it was written. At once where the window shows it. */
  #isWhole(at: number, { sequence, sizeBytes }: GroupHeader): boolean | Promise<boolean> {
    const { window } = this
    const end = at + sizeBytes
    this.newest = Math.max(this.newest, sequence)
    // Beyond the end lie whole turns of stale groups, which are not worth their CRC.
    if (end > window.sizeBytes || (sequence <= this.#after && this.end >= 0)) return false
    if (!window.shows(at, end)) return this.#isWholeBeyond(at, end)
    const from = at - window.at
    const crc = this.#crc32c(window.bytes, undefined, from + GROUP_HEADER_BYTES, from + sizeBytes)
    return crc === bodyCrc(window.bytes, from)
  }

  async #isWholeBeyond(at: number, end: number): Promise<boolean> {
    const { window } = this
    const expected = bodyCrc(window.bytes, at - window.at)
    let crc: number | undefined
    for (let from = at + GROUP_HEADER_BYTES; ; ) {
      const to = Math.min(end, window.end)
      crc = this.#crc32c(window.bytes, crc, from - window.at, to - window.at)
      if (to === end) return crc === expected
      await window.move(to)
      if (window.end === to) return false
      from = to
    }
  }

  /** The next place from `from` on that may begin a group; −1 for none. */
  async #next(from: number): Promise<number> {
    const { window } = this
    for (let at = from; at + MAGIC_BYTES <= window.sizeBytes; ) {
      if (!window.shows(at, at + MAGIC_BYTES)) await window.move(at, at + MAGIC_BYTES)
      const found = findMagic(window.bytes, at - window.at)
      if (found >= 0) return window.at + found
      // What is cut off at the end of the window may be one still.
      at = Math.max(at + 1, window.end - MAGIC_BYTES + 1)
    }
    return -1
  }

  /** Whether something is at `position` that neither is the end of the journal nor was there before group `missing`. */
  async isDirty(position: number, missing: number): Promise<boolean> {
    const { window } = this
    const end = position + GROUP_HEADER_BYTES
    if (!window.shows(position, end)) await window.move(position, end)
    const at = position - window.at
    if (window.bytes.subarray(at, at + GROUP_HEADER_BYTES).every((byte) => byte === 0)) return false
    const header = readGroupHeader(window.bytes, at, this.#crc32c)
    return header === undefined || header.sequence >= missing
  }

  /** From `position` on, up to the zeros that the file ends with. */
  async restFrom(position: number): Promise<JournalRest> {
    const { window } = this
    let end = position
    for (let at = position; at < window.sizeBytes; at = window.end) {
      await window.move(at)
      if (window.bytes.length === 0) break
      const content = contentBytes(window.bytes)
      if (content > 0) end = at + content
    }
    return { file: this.path, position, sizeBytes: end - position }
  }
}

/** How many bytes there are before the zeros at the end. */
function contentBytes(bytes: Uint8Array): number {
  let length = bytes.length
  while (length > 0 && bytes[length - 1] === 0) length--
  return length
}

/** How it ends before group `missing`, which is nowhere. `beyond`: what was found in spite of that. */
async function tailOf(
  files: readonly JournalScan[],
  last: Group | undefined,
  beyond: readonly Group[],
  missing: number,
): Promise<JournalTail> {
  const places = files.map((file): Place => {
    if (last === undefined) return { in: file, position: file.end }
    return { in: file, position: file.path === last.file ? last.position + last.sizeBytes : 0 }
  })
  // It would have followed the last one, or begun the other file.
  if (last?.file === files[1]?.path) places.reverse()
  const damage = await damageIn(places, files, beyond, missing)
  if (damage === undefined) return { kind: 'clean' }
  const { in: file, position } = damage
  const proof = beyond.find((group) => group.synced >= missing || group.file !== file.path)
  if (proof === undefined) return { kind: 'torn', ...(await file.restFrom(position)) }
  const { sequence, file: other, position: at } = proof
  const why = `group ${missing} cannot be read, but was on the disk: group ${sequence} shows that, in ${other} at ${at}`
  return { kind: 'corrupt', file: file.path, position, why }
}

/** Where group `missing` should be, and something else is. */
async function damageIn(
  places: readonly Place[],
  files: readonly JournalScan[],
  beyond: readonly Group[],
  missing: number,
): Promise<Place | undefined> {
  for (const place of places) if (await place.in.isDirty(place.position, missing)) return place
  const [group] = beyond
  const file = files.find(({ path }) => path === group?.file)
  return file && group && { in: file, position: group.position }
}

async function restOf(
  file: JournalScan,
  tail: JournalTail,
  beyond: readonly Group[],
): Promise<readonly JournalRest[]> {
  const positions = beyond.filter((group) => group.file === file.path).map(({ position }) => position)
  if (tail.kind !== 'clean' && tail.file === file.path) positions.push(tail.position)
  return positions.length === 0 ? [] : [await file.restFrom(Math.min(...positions))]
}
