/**
 * How long things take, as a distribution in fixed memory: buckets that are linear within a power of two
 * and double with it, so that the error is relative.
 *
 *   µs       1 ········ 2 ········ 4 ········ 8  …  2³¹ ········ 2³²      32 octaves × 32 buckets
 *            │││││││││││││││││││││││││││││││││        1 µs to 71 minutes, 8 KiB at most
 *
 * A bucket is 1/32 of its octave's start wide; answered by its middle, a value is off by at most 1/64, which
 * is 1.6 %. Values outside fall into the first or last bucket. Minimum, maximum and mean are exact. An octave gets its
 * buckets with its first value: every reader has a histogram, and few handlers take from a microsecond to an hour.
 */
import type { HistogramSnapshot } from '../model/views.ts'

const OCTAVES = 32
const BUCKETS_PER_OCTAVE = 32
const US_PER_MS = 1_000
const MAX_US = 2 ** OCTAVES - 1

/** 2^−octave: a product with a power of two is exact, so bucket borders are too. */
const INVERSE: Float64Array = Float64Array.from({ length: OCTAVES }, (_, octave) => 2 ** -octave)

export class Histogram {
  /** By octave. */
  readonly #buckets: (number[] | undefined)[] = []
  #count = 0
  #sumMs = 0
  #minMs = Number.POSITIVE_INFINITY
  #maxMs = 0

  /** Counts one value; less than 0 counts as 0. */
  record(valueMs: number): void {
    const ms = Math.max(valueMs, 0)
    const us = Math.min(Math.max(ms * US_PER_MS, 1), MAX_US)
    const octave = 31 - Math.clz32(us)
    const step = ((us * (INVERSE[octave] as number) - 1) * BUCKETS_PER_OCTAVE) | 0
    this.#buckets[octave] ??= new Array<number>(BUCKETS_PER_OCTAVE).fill(0)
    const buckets = this.#buckets[octave]
    buckets[step] = (buckets[step] as number) + 1
    this.#count++
    this.#sumMs += ms
    if (ms < this.#minMs) this.#minMs = ms
    if (ms > this.#maxMs) this.#maxMs = ms
  }

  /** All zeros when nothing was recorded. */
  snapshot(): HistogramSnapshot {
    const [p50Ms, p90Ms, p99Ms, p999Ms] = this.#quantiles([0.5, 0.9, 0.99, 0.999])
    return {
      count: this.#count,
      minMs: this.#count === 0 ? 0 : this.#minMs,
      maxMs: this.#maxMs,
      meanMs: this.#count === 0 ? 0 : this.#sumMs / this.#count,
      p50Ms,
      p90Ms,
      p99Ms,
      p999Ms,
    }
  }

  /** By nearest rank: the value that `q` of all values do not exceed. `qs` ascends. */
  #quantiles<const Q extends readonly number[]>(qs: Q): { [K in keyof Q]: number } {
    let bucket = -1
    let below = 0
    const found = qs.map((q) => {
      const rank = Math.ceil(q * this.#count)
      while (below < rank) below += this.#countIn(++bucket)
      return bucket < 0 ? 0 : Math.min(Math.max(middleMs(bucket), this.#minMs), this.#maxMs)
    })
    return found as { [K in keyof Q]: number }
  }

  #countIn(bucket: number): number {
    const octave = Math.floor(bucket / BUCKETS_PER_OCTAVE)
    return this.#buckets[octave]?.[bucket % BUCKETS_PER_OCTAVE] ?? 0
  }
}

function middleMs(bucket: number): number {
  const octave = Math.floor(bucket / BUCKETS_PER_OCTAVE)
  const step = bucket % BUCKETS_PER_OCTAVE
  return (2 ** octave * (1 + (step + 0.5) / BUCKETS_PER_OCTAVE)) / US_PER_MS
}
