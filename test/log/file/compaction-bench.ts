/** Compaction of segments that hold exactly these batches, without an engine around it. */
import type { Behind } from '../../../src/log/file/behind.ts'
import { ChunkCache } from '../../../src/log/file/chunk-cache.ts'
import { Compactable } from '../../../src/log/file/compactable.ts'
import { compactLog } from '../../../src/log/file/compaction.ts'
import { Extent } from '../../../src/log/file/extent.ts'
import { MAP_BYTES } from '../../../src/log/file/offset-map.ts'
import { Resident } from '../../../src/log/file/resident.ts'
import { Room } from '../../../src/log/file/room.ts'
import type { Segments } from '../../../src/log/file/segments.ts'
import type { CompressionPort } from '../../../src/log/format/compression.ts'
import { decodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { decodeBatch, producerOf, readHeader } from '../../../src/log/format/record-batch.ts'
import { PartitionState } from '../../../src/log/state.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { decoder, T0 } from './batches.ts'
import { DAY_MS } from './compaction-kit.ts'
import { tinyCompression } from './compaction-model.ts'
import { append, nextOf, openSegments } from './segments-kit.ts'

export interface BenchOptions {
  /** What a segment may hold; one batch each, if nothing is said. */
  readonly segmentBytes?: number
  /** What compaction merges segments to. */
  readonly mergedBytes?: number
  readonly mapBytes?: number
  readonly compression?: CompressionPort
  readonly deleteRetentionMs?: number
}

export class Bench {
  readonly fs: SimFs = new SimFs()
  readonly state: PartitionState = new PartitionState()
  readonly segments: Segments
  readonly log: Compactable
  readonly resident: Resident
  readonly marks = { start: 0, stable: 0, high: 0, end: 0, epoch: 0 }
  /** As if everything were written at once. */
  readonly behind = {
    start: 0,
    whenWritten: async (make: () => void): Promise<boolean> => {
      make()
      return true
    },
    dropChange: (): void => {},
  }
  compression: CompressionPort
  now: number = T0
  readonly #options: BenchOptions

  private constructor(segments: Segments, options: BenchOptions, fs: SimFs) {
    this.fs = fs
    this.segments = segments
    this.#options = options
    this.compression = options.compression ?? tinyCompression
    const resident = new Resident(segments, new ChunkCache(), decoder, this.state)
    this.resident = resident
    const room = new Room(this.marks, new Extent(0))
    const { state, marks } = this
    const behind = this.behind as unknown as Behind
    const parts = { segments, resident, room, state, marks, behind, hurry: () => {} }
    this.log = new Compactable(parts, undefined)
    const { deleteRetentionMs = DAY_MS } = options
    this.log.configure({ cleanup: 'compact', deleteRetentionMs })
  }

  static async of(batches: readonly Uint8Array[], options: BenchOptions = {}): Promise<Bench> {
    const fs = new SimFs()
    const { segmentBytes = 1 } = options
    const bench = new Bench(await openSegments(fs, [], { segmentBytes }), options, fs)
    await bench.add(...batches)
    return bench
  }

  /** The last one is active. */
  async add(...batches: readonly Uint8Array[]): Promise<void> {
    for (const batch of batches) {
      await append(this.segments, batch)
      const { producerId, producerEpoch, control, baseOffset, maxTimestamp, ...header } = readHeader(batch, 0)
      const next = nextOf(batch)
      this.marks.stable = this.marks.high = this.marks.end = next
      if (control) {
        const marker = decodeMarker(batch, 0)
        this.state.marker(producerId, producerEpoch, marker?.commit === true, baseOffset, maxTimestamp)
      } else if (producerId >= 0) {
        const producer = producerOf({
          ...header,
          producerId,
          producerEpoch,
          control,
          baseOffset,
          maxTimestamp,
        })
        if (producer !== null) this.state.appended(producer, baseOffset, next - 1, maxTimestamp)
      }
    }
  }

  /** Answers how many slices it took. */
  async compact(afterMs: number = 0): Promise<number> {
    this.now += afterMs
    const { mergedBytes: segmentBytes = 1_000_000, mapBytes = MAP_BYTES } = this.#options
    const options = { now: () => this.now, crc32c, compression: this.compression, segmentBytes, mapBytes }
    let slices = 0
    for await (const _ of compactLog(this.log, options)) slices++
    return slices
  }

  /** All batches that are there. */
  async batches(): Promise<Uint8Array[]> {
    const batches: Uint8Array[] = []
    for (let at = 0; at < this.segments.next; ) {
      const { bytes, next } = await this.segments.read(at, 1)
      if (bytes.length > 0) batches.push(bytes)
      at = next
    }
    return batches
  }

  /** `offset:key=value` of all records; control batches as `offset:marker`. */
  async records(): Promise<string[]> {
    const records: string[] = []
    for (const batch of await this.batches()) {
      const header = readHeader(batch, 0)
      if (header.control) records.push(`${header.baseOffset}:marker`)
      else records.push(...recordsOf(batch))
    }
    return records
  }
}

export function recordsOf(batch: Uint8Array): string[] {
  const rows = decodeBatch(batch, 0, defaultCodec, tinyCompression)
  return Array.from({ length: rows.count }, (_, row) => {
    return `${rows.offsetAt(row)}:${rows.keyAt(row)}=${rows.values[row]}`
  })
}
