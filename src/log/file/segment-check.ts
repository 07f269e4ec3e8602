/**
 * Looks at the segments of a log as they are on the disk, for `odradek verify` and `odradek inspect`. Changes nothing, so
 * it may be used on a directory that nobody has open, or on what a crash left behind.
 */
import { odradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import type { StoredSegment } from './checkpoint.ts'
import { type DataFile, type FileSystem, unlessMissing } from './fs.ts'
import type { LogId } from './group.ts'
import { decodeFooter, encodeFooter, FOOTER_BYTES } from './segment-footer.ts'
import { decodeIndex, type Extract, encodeIndex } from './segment-index.ts'
import { directoryOf, indexPath, segmentPath } from './segment-paths.ts'
import { Survey } from './segment-survey.ts'

export interface CheckOptions {
  readonly fs: FileSystem
  readonly crc32c: Crc32c
  readonly log: LogId
  /** Segments that end at or below it may be missing. */
  readonly start: number
  /** Told before a segment is read, with the size of its batches. */
  readonly looking?: (file: string, sizeBytes: number) => void
}

export interface Finding {
  readonly file: string
  /** Where it was noticed, in bytes. */
  readonly position: number
  readonly what: string
  /** It is only a cache that is of no use: it will be made again. */
  readonly harmless: boolean
}

/**
 * Reads everything that a checkpoint tells of: every batch with its CRC, offsets and epochs, the CRC over all of them,
 * the footer, and the index where there is one. What comes after damage in a file is not looked at, other files are.
 */
export async function* verifySegments(
  options: CheckOptions,
  stored: readonly StoredSegment[],
): AsyncGenerator<Finding> {
  const directory = directoryOf(options.log)
  let next = stored[0]?.base
  for (const segment of stored) {
    const file = segmentPath(directory, segment.base, segment.generation)
    if (segment.base !== next) yield damageOf(file, 0, `it begins at offset ${segment.base}, not ${next}`)
    next = segment.next
    options.looking?.(file, segment.sizeBytes)
    try {
      const findings = await withFile(options.fs, file, (open) => verified(options, segment, file, open))
      if (findings !== undefined) yield* findings
      else if (segment.sizeBytes > 0 && next > options.start) yield damageOf(file, 0, 'it is missing')
    } catch (error) {
      yield damageOf(file, 0, odradekError(error).message)
    }
  }
}

function damageOf(file: string, position: number, what: string): Finding {
  return { file, position, what, harmless: false }
}

async function verified(
  options: CheckOptions,
  segment: StoredSegment,
  path: string,
  file: DataFile,
): Promise<Finding[]> {
  const { base, sizeBytes, sealed, compacted = false } = segment
  const survey = new Survey({ base, compacted }, options.crc32c)
  await survey.goOn(file, sizeBytes)
  const damage = survey.differsFrom(segment)
  const findings = damage === null ? [] : [damageOf(path, damage.position, damage.what)]
  if (!sealed || (await file.size()) < sizeBytes) return findings
  const footer = await footerFinding(options, segment, path, file)
  const index = damage === null ? await indexFinding(options, segment, survey) : undefined
  return [...findings, footer, index].filter((finding) => finding !== undefined)
}

async function footerFinding(
  { crc32c }: CheckOptions,
  segment: StoredSegment,
  path: string,
  file: DataFile,
): Promise<Finding | undefined> {
  const { sizeBytes, compacted = false } = segment
  const found = new Uint8Array(FOOTER_BYTES + 1)
  const length = await file.read(found, sizeBytes)
  const expected = encodeFooter({ ...segment, compacted }, crc32c)
  const at = firstDifference(found.subarray(0, length), expected)
  if (at < 0) return undefined
  const what = at < FOOTER_BYTES ? 'the footer does not say what it should' : 'bytes follow the footer'
  return damageOf(path, sizeBytes + at, what)
}

/** One that is old, or covers a part, is as it may be; one that cannot be read is of no use. */
async function indexFinding(
  { fs, crc32c, log }: CheckOptions,
  { base, generation }: StoredSegment,
  survey: Survey,
): Promise<Finding | undefined> {
  const file = indexPath(directoryOf(log), base, generation)
  const bytes = await contentOf(fs, file)
  if (bytes === undefined || decodeIndex(bytes, base, crc32c) !== undefined) return undefined
  const position = Math.max(firstDifference(bytes, encodeIndex(survey.index, base, survey, crc32c)), 0)
  return { file, position, what: 'it is no index; it will be made again when it is needed', harmless: true }
}

/** What is there of one segment. */
export interface SegmentDescription extends StoredSegment {
  readonly file: string
  /** Of the file; undefined where there is none. */
  readonly fileBytes: number | undefined
  readonly footer: boolean
  /** How many bytes of the segment the index beside it covers; undefined where there is none of use. */
  readonly indexedBytes: number | undefined
}

/** Without reading batches. */
export async function describeSegments(
  { fs, crc32c, log }: CheckOptions,
  stored: readonly StoredSegment[],
): Promise<SegmentDescription[]> {
  const directory = directoryOf(log)
  const descriptions: SegmentDescription[] = []
  for (const segment of stored) {
    const { base, generation } = segment
    const file = segmentPath(directory, base, generation)
    const found = await withFile(fs, file, async (open) => {
      const footer = new Uint8Array(FOOTER_BYTES)
      const length = await open.read(footer, segment.sizeBytes)
      return {
        fileBytes: await open.size(),
        footer: decodeFooter(footer.subarray(0, length), crc32c) !== undefined,
      }
    })
    const bytes = await contentOf(fs, indexPath(directory, base, generation))
    const index = bytes === undefined ? undefined : decodeIndex(bytes, base, crc32c)
    descriptions.push({
      ...segment,
      file,
      fileBytes: found?.fileBytes,
      footer: found?.footer ?? false,
      indexedBytes: index !== undefined && mayBeOf(segment, index.of) ? index.of.sizeBytes : undefined,
    })
  }
  return descriptions
}

/** One that covers a part may be of other bytes, but that shows only when they are read. */
function mayBeOf({ sizeBytes, crc }: StoredSegment, of: Extract): boolean {
  return of.sizeBytes < sizeBytes || (of.sizeBytes === sizeBytes && of.crc === crc)
}

function contentOf(fs: FileSystem, path: string): Promise<Uint8Array | undefined> {
  return withFile(fs, path, async (file) => {
    const bytes = new Uint8Array(await file.size())
    return bytes.subarray(0, await file.read(bytes, 0))
  })
}

/** Undefined where there is no such file. */
async function withFile<T>(
  fs: FileSystem,
  path: string,
  body: (file: DataFile) => Promise<T>,
): Promise<T | undefined> {
  const file = await unlessMissing(fs.open(path, 'read'))
  if (file === undefined) return undefined
  try {
    return await body(file)
  } finally {
    await file.close()
  }
}

/** Place of the first byte in which they differ, −1 where they are the same. */
function firstDifference(found: Uint8Array, expected: Uint8Array): number {
  const length = Math.max(found.length, expected.length)
  for (let at = 0; at < length; at++) if (found[at] !== expected[at]) return at
  return -1
}
