/**
 * Large buffers that are used again. The system gives new memory page by page, each of them zeroed when it is touched
 * first, and the engine collects garbage by how many bytes there are outside its heap: for bytes that only pass through,
 * both cost more than the copying itself.
 *
 *   take ─► in use, by one owner ─► give ─► free, by capacity ─► take …
 *                    └─► never given back: garbage like any other
 *
 * So whoever is not sure that nobody looks at a buffer any more just keeps it. What is free is bounded; the capacity that
 * was not asked for longest goes first. Small buffers are new each time: the engine is good at those.
 */
import { assert } from '../../model/errors.ts'

/** What is smaller is not kept. */
const MIN_POOLED_BYTES = 65_536
/** Capacities between one power of two and the next: a buffer is at most a quarter larger than what was asked for. */
const STEPS = 4

/** What a buffer for so many bytes holds. */
export function capacityFor(sizeBytes: number): number {
  if (sizeBytes < MIN_POOLED_BYTES) return sizeBytes
  const step = 2 ** Math.floor(Math.log2(sizeBytes)) / STEPS
  return Math.ceil(sizeBytes / step) * step
}

export class BufferPool {
  readonly #maxBytes: number
  /** By capacity, that which was given back last at the end. */
  readonly #free = new Map<number, Uint8Array[]>()
  #freeBytes = 0

  /** `maxBytes`: how much may be free. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get freeBytes(): number {
    return this.#freeBytes
  }

  /** `capacityFor(sizeBytes)` bytes, with anything in them. */
  take(sizeBytes: number): Uint8Array {
    const capacity = capacityFor(sizeBytes)
    const free = this.#free.get(capacity)?.pop()
    if (free === undefined) return new Uint8Array(capacity)
    this.#freeBytes -= capacity
    return free
  }

  /** What `take` answered, whole. Nobody else may look at it any more. */
  give(buffer: Uint8Array): void {
    const { length } = buffer
    if (length < MIN_POOLED_BYTES || length > this.#maxBytes) return
    const free = this.#free.get(length) ?? []
    // Two would have it at once.
    assert(!free.includes(buffer), 'a buffer is given back once')
    this.#free.delete(length)
    for (const [capacity, others] of this.#free) {
      if (this.#freeBytes + length <= this.#maxBytes) break
      this.#freeBytes -= capacity * others.length
      this.#free.delete(capacity)
    }
    if (this.#freeBytes + length <= this.#maxBytes) {
      free.push(buffer)
      this.#freeBytes += length
    }
    this.#free.set(length, free)
  }
}
