/**
 * Salvage of a log whose segments are damaged: a file that is missing or too short, or bytes that are not those that were
 * written. A damaged segment is written anew with its sound batches only, and takes the place of the old one as after
 * compaction: offsets stay, those that are lost are missing, and the log ends where it ended.
 *
 *   told of   │ sealed │ ▒ damaged ▒ │ active, cut off ▒│
 *   after     │ sealed │ gaps        │ gaps, sealed     │       the next record begins a new one
 *
 * The damaged file is copied aside first, and it stays until a checkpoint tells of the new one. So salvage that is killed
 * begins again from the same files. Markers of aborted transactions are made again where they are lost: the checkpoint
 * knows of them, and without them what a producer committed later would count as aborted.
 */
import { encodeMarker } from '../format/control.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { BatchScan } from '../format/scan.ts'
import type { StoredLog, StoredSegment } from './checkpoint.ts'
import type { Damage } from './damage.ts'
import type { FilePool } from './file-pool.ts'
import { type FileSystem, unlessMissing } from './fs.ts'
import { Rewriter } from './rewriter.ts'
import { Segment, type SegmentPlace } from './segment.ts'
import { verifySegments } from './segment-check.ts'
import { decodeIndex, type SegmentIndex } from './segment-index.ts'
import { directoryOf, indexPath, segmentPath } from './segment-paths.ts'
import { type Block, type LostRange, SoundBatches } from './sound-batches.ts'

const PIECE_BYTES = 1024 * 1024

export interface SalvageOptions {
  readonly fs: FileSystem
  readonly pool: FilePool
  readonly crc32c: Crc32c
  /** Where the log begins by all that is known: segments below may be gone. */
  readonly neededFrom: number
}

export interface Salvaged {
  readonly segments: readonly StoredSegment[]
  /** Those that have others in their places, as they were told of. */
  readonly replaced: readonly StoredSegment[]
  /** What was found and lost, for people. */
  readonly findings: readonly string[]
}

/** @throws OdradekError STORAGE_ERROR, STORAGE_FULL: everything is as it was, but for copies */
export async function salvageLog(options: SalvageOptions, log: StoredLog): Promise<Salvaged> {
  const segments: StoredSegment[] = []
  const replaced: StoredSegment[] = []
  const findings: string[] = []
  for (const segment of log.segments) {
    const damage = await damageOf(options, log, segment)
    if (damage === undefined) segments.push(segment)
    else {
      const salvage = new SegmentSalvage(options, log, segment)
      segments.push(await salvage.run())
      findings.push(salvage.finding(damage))
      replaced.push(segment)
    }
  }
  return { segments, replaced, findings }
}

async function damageOf(
  { fs, crc32c, neededFrom: start }: SalvageOptions,
  log: StoredLog,
  segment: StoredSegment,
): Promise<Damage | undefined> {
  for await (const finding of verifySegments({ fs, crc32c, log, start }, [segment])) {
    if (!finding.harmless) return finding
  }
  return undefined
}

class SegmentSalvage {
  readonly #options: SalvageOptions
  readonly #log: StoredLog
  readonly #segment: StoredSegment
  readonly #place: SegmentPlace
  readonly #path: string
  #copy: string | null = null
  #lost: readonly LostRange[] = []

  constructor(options: SalvageOptions, log: StoredLog, segment: StoredSegment) {
    this.#options = options
    this.#log = log
    this.#segment = segment
    this.#place = { ...options, directory: directoryOf(log) }
    this.#path = segmentPath(this.#place.directory, segment.base, segment.generation)
  }

  /** Writes the new one. */
  async run(): Promise<StoredSegment> {
    const { base, next, generation = 0 } = this.#segment
    const sound = await this.#sound()
    this.#lost = sound.lost
    const kind = { compacted: true, generation: generation + 1 }
    const output = new Rewriter(new Segment(this.#place, base, kind))
    await output.segment.create()
    for (const batch of this.#withMarkers(sound.batches)) output.add(batch)
    await output.finish(next)
    return output.segment.stored()
  }

  finding({ position, what }: Damage): string {
    const { neededFrom } = this.#options
    const ranges = this.#lost
      .map(({ position: at, from, to }) => ({ at, from: Math.max(from, neededFrom), to }))
      .filter(({ from, to }) => to > from)
      .map(({ at, from, to }) => `${from} to ${to - 1} (from byte ${at})`)
    const lost = ranges.length === 0 ? 'no record is lost' : `lost are the offsets ${ranges.join(', ')}`
    const copy = this.#copy === null ? '' : `; the file as it was is in ${this.#copy}`
    return `${this.#path} is damaged at byte ${position} (${what}): ${lost}${copy}`
  }

  async #sound(): Promise<SoundBatches> {
    const { fs } = this.#options
    const bytes = (await fs.exists(this.#path)) ? await this.#readAside() : new Uint8Array(0)
    const sound = new SoundBatches(bytes, this.#options.crc32c, (offset) => this.#epochOf(offset))
    for (const block of await this.#blocks()) sound.take(block)
    return sound
  }

  /** What is there of the file, after it was copied. */
  async #readAside(): Promise<Uint8Array> {
    const { fs } = this.#options
    const copy = `torn/${this.#path.replaceAll('/', '-')}`
    const bytes = new Uint8Array(this.#segment.sizeBytes)
    await fs.makeDirectory('torn')
    await fs.remove(copy)
    const from = await fs.open(this.#path, 'read')
    try {
      const to = await fs.open(copy, 'create')
      try {
        const piece = new Uint8Array(PIECE_BYTES)
        for (let at = 0; ; at += PIECE_BYTES) {
          const length = await from.read(piece, at)
          await to.write(piece.subarray(0, length), at)
          if (length < PIECE_BYTES) break
        }
        await to.sync()
      } finally {
        await to.close()
      }
      await fs.syncDirectory('torn')
      await fs.syncDirectory('')
      this.#copy = copy
      return bytes.subarray(0, await from.read(bytes, 0))
    } finally {
      await from.close()
    }
  }

  /** By the index, where one says that it was made of exactly what should be there. */
  async #blocks(): Promise<readonly Block[]> {
    const { base, next, sizeBytes, compacted = false } = this.#segment
    const index = await this.#index()
    if (index === undefined)
      return [{ from: 0, to: sizeBytes, base, next, exact: !compacted, gaps: compacted }]
    return index.offsets.map((offset, i) => ({
      from: index.positions[i] as number,
      to: index.positions[i + 1] ?? sizeBytes,
      base: offset,
      next: index.offsets[i + 1] ?? next,
      exact: !compacted,
      gaps: false,
    }))
  }

  async #index(): Promise<SegmentIndex | undefined> {
    const { fs, crc32c } = this.#options
    const { base, generation, sizeBytes, crc } = this.#segment
    const file = await unlessMissing(fs.open(indexPath(this.#place.directory, base, generation), 'read'))
    if (file === undefined) return undefined
    try {
      const bytes = new Uint8Array(await file.size())
      const saved = decodeIndex(bytes.subarray(0, await file.read(bytes, 0)), base, crc32c)
      return saved?.of.crc === crc && saved.of.sizeBytes === sizeBytes ? saved.index : undefined
    } finally {
      await file.close()
    }
  }

  #epochOf(offset: number): number | undefined {
    return this.#log.state.epochs.findLast(({ start }) => start <= offset)?.epoch
  }

  /** In their places, those that the state of the log knows and that are lost. */
  *#withMarkers(batches: readonly Uint8Array[]): Generator<Uint8Array> {
    const { base, next } = this.#segment
    const known = this.#log.state.aborted.filter(({ marker }) => marker >= base && marker < next)
    const markers = known.map(({ marker }) => marker)
    const scan = new BatchScan()
    let at = 0
    for (const batch of batches) {
      scan.start(batch).next()
      for (; at < known.length && (markers[at] as number) < scan.base; at++) yield this.#marker(known[at])
      if (markers[at] === scan.base) at++
      yield batch
    }
    for (; at < known.length; at++) yield this.#marker(known[at])
  }

  #marker(aborted: StoredLog['state']['aborted'][number] | undefined): Uint8Array {
    const { producerId = 0, marker = 0 } = aborted ?? {}
    const producer = this.#log.state.producers.find(({ id }) => id === producerId)
    return encodeMarker(
      { commit: false, coordinatorEpoch: 0 },
      {
        baseOffset: marker,
        leaderEpoch: this.#epochOf(marker) ?? 0,
        producerId,
        producerEpoch: producer?.epoch ?? 0,
        timestamp: Math.max(this.#segment.maxTimestamp, 0),
        crc32c: this.#options.crc32c,
      },
    )
  }
}
