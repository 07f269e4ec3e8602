/**
 * The checkpoint: everything that the journal does not have to say any more. One file, replaced as a whole.
 *
 *   odradek checkpoint 1 <length> <CRC-32C>\n         for people (`head -1`), and for later versions
 *   {"format":1,                                      <length> bytes of JSON, one log or entry a line
 *   "sequence":42, ...
 *
 * `1` is the format, length is in decimal, the CRC in eight lower-case hexadecimal digits; it is that of the header up
 * to the blank before it, and of the JSON. So no byte of the file can change unnoticed, and a format that this version
 * does not know is told from a broken one.
 *
 * Written aside and synced before it takes the old one's name: a crash leaves the old one or the new one. What is left
 * of an unfinished one (checkpoint.new) is never read.
 */
import { OdradekError } from '../../model/errors.ts'
import { MiB } from '../../model/limits.ts'
import type { Crc32c } from '../format/crc32c.ts'
import type { StateSnapshot } from '../state.ts'
import { type Damage, DamagedFile } from './damage.ts'
import { type DataFile, type FileSystem, unlessMissing } from './fs.ts'
import type { LogId } from './group.ts'

export interface StoredSegment {
  readonly base: number
  readonly next: number
  /** Of batches. */
  readonly sizeBytes: number
  /** Newest timestamp of a record, −1 for none. */
  readonly maxTimestamp: number
  /** CRC-32C of the batches. */
  readonly crc: number
  readonly sealed: boolean
  /** Offsets may be missing. */
  readonly compacted?: boolean
  /** How often what it holds was written anew, which its file's name tells; not there for 0. */
  readonly generation?: number
}

/** How far the log was compacted. */
export interface StoredCompaction {
  /** Below it each key is there once. */
  readonly until: number
  /** When the last of the tombstones and markers below it may go; not there when there are none. */
  readonly horizon?: number
}

export interface StoredLog extends LogId {
  readonly topic: string
  readonly start: number
  readonly end: number
  readonly epoch: number
  /** Newest timestamp that was given to a record in process. */
  readonly stamped: number
  readonly segments: readonly StoredSegment[]
  readonly state: StateSnapshot
  readonly compaction?: StoredCompaction
}

export interface Checkpoint {
  readonly format: 1
  /** Groups up to here are in it. */
  readonly sequence: number
  /** The broker was closed, and no group follows. */
  readonly clean: boolean
  readonly durability: 'fsync' | 'os'
  /** Secret start of the CRCs in the journal of this directory, 32 bits: see `seeded`. */
  readonly seed: number
  readonly logs: readonly StoredLog[]
  /** Logs whose files are still to be removed. */
  readonly deleting: readonly LogId[]
  readonly meta: readonly (readonly [string, unknown])[]
}

export const CHECKPOINT_FILE = 'checkpoint'
const NEW_FILE = 'checkpoint.new'
const FORMAT = 1
const HEADER = /^(odradek checkpoint ([1-9]\d{0,8}) (0|[1-9]\d{0,9}) )([0-9a-f]{8})\n/
/** Longest header there can be. */
const HEADER_BYTES = 64
/** The most that can be read into memory again. */
const MAX_JSON_BYTES = 1024 * MiB

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Resolves when the checkpoint is on the disk, in place of the one before. One at a time.
 * @throws OdradekError STORAGE_FULL, STORAGE_ERROR: the one before, or this one, is there.
 */
export async function writeCheckpoint(fs: FileSystem, checkpoint: Checkpoint, crc32c: Crc32c): Promise<void> {
  const json = encoder.encode(textOf(checkpoint))
  const start = `odradek checkpoint ${FORMAT} ${json.length} `
  const crc = crc32c(json, crc32c(encoder.encode(start)))
  const header = encoder.encode(`${start}${crc.toString(16).padStart(8, '0')}\n`)
  await fs.remove(NEW_FILE)
  const file = await fs.open(NEW_FILE, 'create')
  try {
    await file.writeAll([header, json], 0)
    await file.sync()
  } catch (error) {
    await discard(fs, file)
    throw error
  }
  await file.close()
  await fs.rename(NEW_FILE, CHECKPOINT_FILE)
  await fs.syncDirectory('')
}

/** Gives back what a full disk had left for it. */
async function discard(fs: FileSystem, file: DataFile): Promise<void> {
  try {
    await file.close()
    await fs.remove(NEW_FILE)
  } catch {
    // It is never read, the next one replaces it, and why there is none is told by the first error.
  }
}

/** A line for each field, and for each item of a list. */
function textOf(checkpoint: Checkpoint): string {
  const fields = Object.entries(checkpoint).map(([name, value]: [string, unknown]) => {
    const text = Array.isArray(value)
      ? `[${value.map((item) => `\n  ${JSON.stringify(item)}`).join(',')}]`
      : JSON.stringify(value)
    return `"${name}":${text}`
  })
  return `{${fields.join(',\n')}}\n`
}

/**
 * The newest checkpoint, `undefined` where there never was one.
 * @throws OdradekError CORRUPT_LOG when it is broken, UNSUPPORTED when a later version wrote it.
 */
export async function readCheckpoint(fs: FileSystem, crc32c: Crc32c): Promise<Checkpoint | undefined> {
  const file = await unlessMissing(fs.open(CHECKPOINT_FILE, 'read'))
  if (file === undefined) return undefined
  try {
    return await read(file, crc32c)
  } finally {
    await file.close()
  }
}

async function read(file: DataFile, crc32c: Crc32c): Promise<Checkpoint> {
  const head = new Uint8Array(HEADER_BYTES)
  const headBytes = await file.read(head, 0)
  // Byte for byte, so that positions in the text are positions in the file.
  const match = HEADER.exec(String.fromCharCode(...head.subarray(0, headBytes)))
  if (match === null) throw broken(0, 'it does not begin with the header of a checkpoint')
  const [header, start, format, length, crc] = match as unknown as [string, string, string, string, string]
  const jsonBytes = Number(length)
  const sizeBytes = await file.size()
  if (sizeBytes !== header.length + jsonBytes || jsonBytes > MAX_JSON_BYTES) {
    throw broken(
      Math.min(sizeBytes, header.length + jsonBytes),
      `it has ${sizeBytes} bytes, not those it tells of`,
    )
  }
  const json = new Uint8Array(jsonBytes)
  await file.read(json, header.length)
  if (crc32c(json, crc32c(encoder.encode(start))) !== Number.parseInt(crc, 16)) {
    throw broken(header.length, 'its CRC does not hold')
  }
  if (Number(format) !== FORMAT) {
    throw new OdradekError(
      'UNSUPPORTED',
      `${CHECKPOINT_FILE} has format ${format}, which a later version wrote; this one reads format ${FORMAT}: ` +
        'open the directory with that version',
    )
  }
  return parse(json, header.length)
}

function parse(json: Uint8Array, position: number): Checkpoint {
  let content: unknown
  try {
    content = JSON.parse(decoder.decode(json))
  } catch (cause) {
    throw broken(position, 'it is no JSON', cause)
  }
  if (!isCheckpoint(content)) throw broken(position, 'a field is missing, or of another kind')
  return content
}

/** Coarsely: what is in the items is checked by those who understand them. */
function isCheckpoint(content: unknown): content is Checkpoint {
  if (typeof content !== 'object' || content === null) return false
  const { format, sequence, clean, durability, seed, logs, deleting, meta } = content as Record<
    string,
    unknown
  >
  return (
    format === FORMAT &&
    Number.isSafeInteger(sequence) &&
    typeof clean === 'boolean' &&
    (durability === 'fsync' || durability === 'os') &&
    Number.isSafeInteger(seed) &&
    [logs, deleting, meta].every(Array.isArray)
  )
}

function broken(position: number, why: string, cause?: unknown): OdradekError {
  return damagedCheckpoint({ position, what: why }, `${CHECKPOINT_FILE}, position ${position}: ${why}`, cause)
}

/** Without it nothing says what of the directory counts: it is the one file that `salvage` cannot do without. */
export function damagedCheckpoint(damage: Damage, message: string, cause?: unknown): DamagedFile {
  const advice = 'restore it from a copy of the directory; `salvage` needs it too'
  return new DamagedFile(CHECKPOINT_FILE, damage, `${message}; ${advice}`, { cause })
}
