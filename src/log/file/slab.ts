/**
 * Memory for batches that come as bytes. Each is copied once, to where it stays: the journal and segments are written from
 * there, and readers are shown it there (chunk.ts).
 *
 *   slab      │ batch │ batch │ batch │ batch │ batch │            │ ▸
 *   chunks    └───────── chunk ───────┘ └─ tail ─┘                 what is pending holds the slab itself
 *
 * - Batches of one log lie in it one behind the other, as they are accepted.
 * - It is held by whoever looks at a part of it: the log that fills it, each batch that is pending, each chunk, each reader
 *   that was lent a view. When the last one lets go its bytes are used again. Who is not sure that nobody looks any more does
 *   not let go: then it is garbage like any other.
 */
import { assert } from '../../model/errors.ts'
import type { BufferPool } from '../format/buffer-pool.ts'

const KiB = 1024
/** What a log that gets much has its batches in. */
const SLAB_BYTES = 512 * KiB
/** What a log begins with: each next slab is twice as large. */
const FIRST_BYTES = 4 * KiB
/** A batch of this much has a slab of its own: less of others is left empty. */
const LARGE_BYTES = SLAB_BYTES / 4

export class Slab {
  readonly bytes: Uint8Array
  readonly #pool: BufferPool
  #holders = 1

  /** Held once, by whoever makes it. */
  constructor(pool: BufferPool, sizeBytes: number) {
    this.#pool = pool
    this.bytes = pool.take(sizeBytes)
  }

  hold(): void {
    this.#holders++
  }

  /** Once for each `hold`: once more, and bytes that somebody looks at would be written over. */
  release(): void {
    assert(this.#holders > 0, 'a slab is let go of by those who hold it')
    this.#holders--
    if (this.#holders === 0) this.#pool.give(this.bytes)
  }
}

/** A copy of a batch, and the slab that it is in, which is held for it. */
export interface Copied {
  readonly bytes: Uint8Array
  readonly slab: Slab
}

/** Where the batches of one log are copied to. */
export class SlabFiller {
  readonly #pool: BufferPool
  #slab: Slab | null = null
  #usedBytes = 0

  constructor(pool: BufferPool) {
    this.#pool = pool
  }

  copy(batch: Uint8Array): Copied {
    const { length } = batch
    if (length >= LARGE_BYTES) {
      const slab = new Slab(this.#pool, length)
      return { bytes: copied(batch, slab, 0), slab }
    }
    const slab = this.#withRoom(length)
    slab.hold()
    const bytes = copied(batch, slab, this.#usedBytes)
    this.#usedBytes += length
    return { bytes, slab }
  }

  /** Begins small again, with the next batch. */
  rest(): void {
    this.#slab?.release()
    this.#slab = null
  }

  #withRoom(sizeBytes: number): Slab {
    const full = this.#slab
    if (full !== null && this.#usedBytes + sizeBytes <= full.bytes.length) return full
    const doubled = full === null ? FIRST_BYTES : Math.min(full.bytes.length * 2, SLAB_BYTES)
    full?.release()
    this.#usedBytes = 0
    this.#slab = new Slab(this.#pool, Math.max(doubled, sizeBytes))
    return this.#slab
  }
}

function copied(batch: Uint8Array, { bytes }: Slab, at: number): Uint8Array {
  const copy = bytes.subarray(at, at + batch.length)
  copy.set(batch)
  return copy
}
