/**
 * Records of a log by their time. Segments say what is in them at most, so most of them need not be read; within one,
 * nothing assumes that timestamps grow. While it looks, records may be evicted: then it goes on from the new start.
 */
import { OdradekError } from '../../model/errors.ts'
import type { At, Marks } from '../contract.ts'
import type { Chunk } from './chunk.ts'
import type { Resident } from './resident.ts'
import type { Segments } from './segments.ts'

export class Lookup {
  readonly #segments: Segments
  readonly #resident: Resident
  readonly #marks: Readonly<Marks>

  constructor(segments: Segments, resident: Resident, marks: Readonly<Marks>) {
    this.#segments = segments
    this.#resident = resident
    this.#marks = marks
  }

  /** The first record at or after `timestamp`. */
  async offsetAt(timestamp: number): Promise<At | undefined> {
    // Asked first: what segments get meanwhile lies behind it.
    const written = this.#segments.next
    const from = await this.#unlessEvicted(
      0,
      this.#segments.seekTime(timestamp).then((at) => at ?? written),
    )
    let found: At | undefined
    await this.#walk(from ?? this.#marks.start, (chunk, at) => {
      found = chunk.firstAtOrAfter(timestamp, at)
      return found === undefined ? chunk.next : undefined
    })
    return found
  }

  /** The first record that has the newest timestamp. */
  async newest(): Promise<At | undefined> {
    let newest = -1
    const skipped = (at: number): number => {
      const segment = this.#segments.list.find(({ next }) => next > at)
      if (segment === undefined || segment.base < at) return at
      newest = Math.max(newest, segment.maxTimestamp)
      return segment.next
    }
    await this.#walk(
      this.#marks.start,
      (chunk, at) => {
        newest = Math.max(newest, chunk.newestTimestamp(at))
        return chunk.next
      },
      skipped,
    )
    return newest < 0 ? undefined : this.offsetAt(newest)
  }

  /** Where the log begins when all that is older than `oldest` is gone, as far as that is known without the disk. */
  startAfter(oldest: number): number {
    let start = this.#marks.start
    for (const { next, maxTimestamp } of this.#segments.list) {
      if (next <= start) continue
      // What has no timestamp does not age.
      if (maxTimestamp < 0 || maxTimestamp >= oldest) break
      start = next
    }
    return this.#resident.expired(start, oldest)
  }

  /**
   * Hands chunk after chunk to `visit`, with the offset to look from; it answers where to go on, or `undefined` for the
   * end. `skipped`: where to go on without a look.
   */
  async #walk(
    from: number,
    visit: (chunk: Chunk, at: number) => number | undefined,
    skipped: (at: number) => number = (at) => at,
  ): Promise<void> {
    for (let at: number | undefined = from; at !== undefined; ) {
      const looked = Math.max(at, this.#marks.start)
      at = skipped(looked)
      if (at >= this.#marks.high) return
      if (at > looked) continue
      const chunk = await this.#unlessEvicted(at, this.#resident.chunkAt(at))
      if (chunk !== undefined) at = visit(chunk, Math.max(at, this.#marks.start))
    }
  }

  /** What was read; `undefined` where the start of the log has passed `at` meanwhile, so that it could not be. */
  async #unlessEvicted<T>(at: number, read: Promise<T>): Promise<T | undefined> {
    try {
      return await read
    } catch (error) {
      const evicted = error instanceof OdradekError && error.code === 'OFFSET_OUT_OF_RANGE'
      if (evicted && this.#marks.start > at) return undefined
      throw error
    }
  }
}
