/**
 * A group of the journal: everything that takes effect together, in one piece on the disk. Big-endian:
 *
 *   0 magic u32 "ODJG" | 4 body length u32 | 8 sequence u64 | 16 synced u64 | 24 CRC-32C of the body u32 |
 *   28 CRC-32C of bytes 0-27 u32 | 32 body: entries, end to end
 *
 *   entry     kind u8 | length u32 | payload
 *     1 batch      log | one RecordBatch v2, its offsets set
 *     2 meta       JSON: [[key, value or null], ...]
 *     3 start      log | offset u64          the log begins there now
 *     4 delete     log                       the log is gone
 *   log       id length u8 | topic id, UTF-8 | partition u32
 *
 * `synced` is the sequence of the newest group known to be on the disk when this one was formed. So if this group
 * can be read and group k cannot, `synced ≥ k` says that k was whole once: the disk lost it, no crash did.
 *
 * The header has a CRC of its own, so that a length is known to be true before anybody follows it, and a search for
 * groups through damage passes by whatever only looks like one.
 *
 * Records hold whatever bytes somebody published, also bytes that look like a group. They must never be taken for
 * one, where a group was cut off in its middle or overwritten in part: so the CRCs start from a secret number of
 * the data directory (`seeded`), which nobody who only publishes knows.
 */
import { assert } from '../../model/errors.ts'
import type { MetaChange } from '../contract.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { crc32cOfBatches } from '../format/crc32c-joined.ts'
import { readInt32, readInt64, writeInt32, writeInt64 } from '../format/integers.ts'
import { readUtf8, utf8Length, writeUtf8 } from '../format/text.ts'

export interface LogId {
  readonly topicId: string
  readonly partition: number
}

export type Entry =
  | { readonly kind: 'batch'; readonly log: LogId; readonly bytes: Uint8Array }
  | { readonly kind: 'meta'; readonly changes: readonly MetaChange[] }
  | { readonly kind: 'start'; readonly log: LogId; readonly offset: number }
  | { readonly kind: 'delete'; readonly log: LogId }

export interface GroupHeader {
  /** Header and body. */
  readonly sizeBytes: number
  readonly sequence: number
  readonly synced: number
}

export const GROUP_HEADER_BYTES = 32
const MAGIC = [0x4f, 0x44, 0x4a, 0x47] as const
export const MAGIC_BYTES: number = MAGIC.length
const LENGTH_AT = 4
const SEQUENCE_AT = 8
const SYNCED_AT = 16
const BODY_CRC_AT = 24
const HEADER_CRC_AT = 28

const BATCH = 1
const META = 2
const START = 3
const DELETE = 4
/** Kind and length. */
export const ENTRY_HEADER_BYTES = 5
/** Length of the id, and the partition. */
const LOG_BYTES = 5
const MAX_ID_BYTES = 255
const OFFSET_BYTES = 8

/** A payload up to this is copied: to hand the system one more piece costs more than copying so little. */
const COPIED_BYTES = 512
const FIRST_BUFFER_BYTES = 4 * 1024
const MAX_BUFFER_BYTES = 256 * 1024

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The same checksum, started from `seed`. */
export function seeded(crc32c: Crc32c, seed: number): Crc32c {
  return (bytes, previous = seed, from = 0, to = bytes.length) => crc32c(bytes, previous, from, to)
}

/**
 * Makes one group. Headers, and payloads that are small, go into buffers of its own; larger batches stay where they
 * are and must not change until the group is written. The last buffer, which is the largest, may serve the next group.
 *
 *   buffers   │ header │ entry, batch │ entry, batch │ entry │        │ entry │ meta │
 *   pieces    └──────────────────────────────────────────────┘ batch └──────────────┘
 */
export class GroupBuilder {
  readonly #pieces: Uint8Array[] = []
  /** Those of the pieces that are one whole batch. */
  readonly #batches = new Set<Uint8Array>()
  #buffer: Uint8Array
  /** Bytes of the buffer from here to `#at` are in no piece yet. */
  #from = 0
  #at = GROUP_HEADER_BYTES
  #sizeBytes = GROUP_HEADER_BYTES

  /** `buffer`: of a group that is written. */
  constructor(buffer: Uint8Array = new Uint8Array(FIRST_BUFFER_BYTES)) {
    this.#buffer = buffer
  }

  /** For the next group, once this one is written. */
  get buffer(): Uint8Array {
    return this.#buffer
  }

  /** Of the whole group. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  get isEmpty(): boolean {
    return this.#sizeBytes === GROUP_HEADER_BYTES
  }

  /** One whole RecordBatch, its offsets set. */
  batch(log: LogId, bytes: Uint8Array): void {
    this.#openOfLog(BATCH, log, bytes.length)
    if (this.#payload(bytes)) this.#batches.add(bytes)
  }

  /** Changes of `Meta`, as JSON. */
  meta(changes: string): void {
    const json = encoder.encode(changes)
    this.#open(META, json.length, 0)
    this.#payload(json)
  }

  start(log: LogId, offset: number): void {
    this.#openOfLog(START, log, OFFSET_BYTES)
    this.#reserve(OFFSET_BYTES)
    writeInt64(this.#buffer, this.#at, offset)
    this.#at += OFFSET_BYTES
  }

  delete(log: LogId): void {
    this.#openOfLog(DELETE, log, 0)
  }

  /** The pieces of the group, to be written in a row. The builder is spent. */
  finish(sequence: number, synced: number, crc32c: Crc32c): readonly Uint8Array[] {
    this.#cut()
    const [first, ...rest] = this.#pieces as [Uint8Array, ...Uint8Array[]]
    let crc = crc32c(first.subarray(GROUP_HEADER_BYTES))
    for (const piece of rest) {
      crc = this.#batches.has(piece) ? crc32cOfBatches(piece, crc, crc32c) : crc32c(piece, crc)
    }
    first.set(MAGIC)
    writeInt32(first, LENGTH_AT, this.#sizeBytes - GROUP_HEADER_BYTES)
    writeInt64(first, SEQUENCE_AT, sequence)
    writeInt64(first, SYNCED_AT, synced)
    writeInt32(first, BODY_CRC_AT, crc)
    writeInt32(first, HEADER_CRC_AT, crc32c(first.subarray(0, HEADER_CRC_AT)))
    return this.#pieces
  }

  #openOfLog(kind: number, log: LogId, payloadBytes: number): void {
    const idBytes = utf8Length(log.topicId)
    assert(idBytes <= MAX_ID_BYTES, `a topic id of ${idBytes} bytes`)
    this.#open(kind, idBytes + LOG_BYTES + payloadBytes, idBytes + LOG_BYTES)
    this.#buffer[this.#at] = idBytes
    const end = writeUtf8(this.#buffer, this.#at + 1, log.topicId)
    writeInt32(this.#buffer, end, log.partition)
    this.#at = end + 4
  }

  /** The header of an entry, with room behind it for what follows in the buffer. */
  #open(kind: number, payloadBytes: number, roomBytes: number): void {
    this.#reserve(ENTRY_HEADER_BYTES + roomBytes)
    this.#buffer[this.#at] = kind
    writeInt32(this.#buffer, this.#at + 1, payloadBytes)
    this.#at += ENTRY_HEADER_BYTES
    this.#sizeBytes += ENTRY_HEADER_BYTES + payloadBytes
  }

  /** Whether it is a piece of its own. */
  #payload(bytes: Uint8Array): boolean {
    if (bytes.length > COPIED_BYTES) {
      this.#cut()
      this.#pieces.push(bytes)
      return true
    }
    this.#reserve(bytes.length)
    this.#buffer.set(bytes, this.#at)
    this.#at += bytes.length
    return false
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    this.#cut()
    this.#buffer = new Uint8Array(Math.min(this.#buffer.length * 2, MAX_BUFFER_BYTES))
    this.#from = this.#at = 0
  }

  /** Makes a piece of what the buffer holds. */
  #cut(): void {
    if (this.#at === this.#from) return
    this.#pieces.push(this.#buffer.subarray(this.#from, this.#at))
    this.#from = this.#at
  }
}

/** The header at `at`, if one is there that its CRC holds for. */
export function readGroupHeader(bytes: Uint8Array, at: number, crc32c: Crc32c): GroupHeader | undefined {
  if (bytes.length - at < GROUP_HEADER_BYTES || !isMagic(bytes, at)) return undefined
  const crc = readInt32(bytes, at + HEADER_CRC_AT) >>> 0
  if (crc32c(bytes, undefined, at, at + HEADER_CRC_AT) !== crc) return undefined
  return {
    sizeBytes: (readInt32(bytes, at + LENGTH_AT) >>> 0) + GROUP_HEADER_BYTES,
    sequence: readInt64(bytes, at + SEQUENCE_AT),
    synced: readInt64(bytes, at + SYNCED_AT),
  }
}

/** The CRC that the body of the group at `at` must have. */
export function bodyCrc(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at + BODY_CRC_AT) >>> 0
}

/** The sequence in the header of a finished group. */
export function sequenceOf(header: Uint8Array): number {
  return readInt64(header, SEQUENCE_AT)
}

/** Where the next four bytes are that may begin a group, from `from` on; −1 for nowhere. */
export function findMagic(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(MAGIC[0], afterZeros(bytes, from))
  while (at >= 0 && !isMagic(bytes, at)) at = bytes.indexOf(MAGIC[0], at + 1)
  return at
}

/** Where there are zeros at `from`, a place behind most of them: eight at once are eight times as fast. */
function afterZeros(bytes: Uint8Array, from: number): number {
  let at = from
  while ((bytes.byteOffset + at) % 8 !== 0 && bytes[at] === 0) at++
  if ((bytes.byteOffset + at) % 8 !== 0) return at
  const words = new Float64Array(bytes.buffer, bytes.byteOffset + at, (bytes.length - at) >>> 3)
  let word = zerosIn(words)
  while (word < words.length && words[word] === 0) word++
  return at + word * 8
}

/**
 * How many there are at the beginning, by fours. The loop alone: compiled while it runs, with code behind it that has not
 * run yet, a function is thrown out of its compiled code there each time.
 */
function zerosIn(words: Float64Array): number {
  const last = words.length - 4
  let word = 0
  // What equals zero has no bits but that of the sign: no byte of it begins anything.
  while (
    word <= last &&
    words[word] === 0 &&
    words[word + 1] === 0 &&
    words[word + 2] === 0 &&
    words[word + 3] === 0
  ) {
    word += 4
  }
  return word
}

function isMagic(bytes: Uint8Array, at: number): boolean {
  return (
    bytes[at] === MAGIC[0] &&
    bytes[at + 1] === MAGIC[1] &&
    bytes[at + 2] === MAGIC[2] &&
    bytes[at + 3] === MAGIC[3]
  )
}

const ID_SLOTS = 1024

/** Whose entries are whose: the same object for the same log, as most entries are of a log that was met before. */
export class LogIds {
  readonly #seen: ({ readonly bytes: Uint8Array; readonly log: LogId } | undefined)[] = []

  /** The log that `bytes` name from `start` to `end`. */
  read(bytes: Uint8Array, start: number, end: number): LogId {
    const slot = hashOf(bytes, start, end) % ID_SLOTS
    const seen = this.#seen[slot]
    if (seen !== undefined && isSame(seen.bytes, bytes, start, end)) return seen.log
    const log = { topicId: readUtf8(bytes, start + 1, end - 4), partition: readInt32(bytes, end - 4) >>> 0 }
    this.#seen[slot] = { bytes: bytes.slice(start, end), log }
    return log
  }
}

/** Of the last bytes: the partition, and what is random in an id. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0
  for (let at = Math.max(start, end - 8); at < end; at++)
    hash = (Math.imul(hash, 31) + (bytes[at] as number)) >>> 0
  return hash
}

function isSame(seen: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (seen.length !== end - start) return false
  for (let i = 0; i < seen.length; i++) if (seen[i] !== bytes[start + i]) return false
  return true
}

/** Who is told of entries, in their order. */
export interface EntryVisitor {
  /** The batch is what `bytes` are from `from` to `end`; it begins at `position` of its file. */
  batch(log: LogId, bytes: Uint8Array, from: number, end: number, position: number): void
  meta(changes: readonly MetaChange[]): void
  start(log: LogId, offset: number): void
  delete(log: LogId): void
}

/** Where the entry at `at` ends, by its header. */
export function entryEnd(bytes: Uint8Array, at: number): number {
  return at + ENTRY_HEADER_BYTES + (readInt32(bytes, at + 1) >>> 0)
}

/** Tells of the entry that `bytes` are from `at` to `end`, at `position` of the file. False: it is none. */
export function visitEntry(
  bytes: Uint8Array,
  at: number,
  end: number,
  position: number,
  ids: LogIds,
  visitor: EntryVisitor,
): boolean {
  const kind = bytes[at]
  const from = at + ENTRY_HEADER_BYTES
  if (kind === META) {
    const changes = readChanges(bytes.subarray(from, end))
    if (changes !== undefined) visitor.meta(changes)
    return changes !== undefined
  }
  const rest = from + LOG_BYTES + (bytes[from] ?? 0)
  if (rest > end) return false
  if (kind === BATCH) visitor.batch(ids.read(bytes, from, rest), bytes, rest, end, position + rest - at)
  else if (kind === START && end - rest === OFFSET_BYTES) {
    visitor.start(ids.read(bytes, from, rest), readInt64(bytes, rest))
  } else if (kind === DELETE && end === rest) visitor.delete(ids.read(bytes, from, rest))
  else return false
  return true
}

function readChanges(bytes: Uint8Array): MetaChange[] | undefined {
  try {
    const changes: unknown = JSON.parse(decoder.decode(bytes))
    return Array.isArray(changes) && changes.every(isChange) ? changes : undefined
  } catch {
    // Neither JSON nor UTF-8: as good as any other nonsense.
    return undefined
  }
}

function isChange(change: unknown): change is MetaChange {
  return Array.isArray(change) && change.length === 2 && typeof change[0] === 'string'
}
