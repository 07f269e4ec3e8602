/**
 * Cuts a stream of bytes into frames, each a length and as many bytes:
 *
 *   chunks   │ 4 │ frame │ 4 │ fra│me │ 4 │ frame │ 4 …
 *                  view        └──┴─ one buffer, filled piece by piece
 *
 * A frame that lies whole within one chunk is a view of it; of one that does not, every byte is copied once. Its length
 * is shown to the owner before anything is made for it. Frames are taken one at a time, so that whoever has enough of
 * them leaves the rest where it is.
 *
 * The buffers come from a pool. Whoever knows that nothing of a frame is looked at any more may give its buffer back.
 */
import { BufferPool } from '../log/format/buffer-pool.ts'
import { readInt32 } from '../log/format/integers.ts'

const LENGTH_BYTES = 4
const NOTHING = new Uint8Array(0)
/** Where nobody gives anything back. */
const NO_POOL = new BufferPool(0)

export class FrameReader {
  readonly #admit: (sizeBytes: number) => boolean
  readonly #pool: BufferPool
  #chunk: Uint8Array = NOTHING
  #at = 0
  readonly #length = new Uint8Array(LENGTH_BYTES)
  #lengthAt = 0
  /** What the next frame is put together in, if it is. */
  #buffer: Uint8Array | undefined
  #frameBytes = 0
  #lastBuffer: Uint8Array | undefined
  #frameAt = 0
  #held = false

  /**
   * `admit` is asked before a frame of that size, negative as it may be, is read: it throws for one that cannot be, and
   * answers false for one that has to wait, which it is then asked for again with the next call of `next`.
   */
  constructor(admit: (sizeBytes: number) => boolean, pool: BufferPool = NO_POOL) {
    this.#admit = admit
    this.#pool = pool
  }

  /** The next frame was not admitted yet. */
  get held(): boolean {
    return this.#held
  }

  /** What the frame takes that was admitted and is not whole: what its size is rounded up to. */
  get heldBytes(): number {
    return this.#buffer?.length ?? 0
  }

  /** The pool's, which the frame that `next` answered last was put together in; `undefined` where that is a view. */
  get lastBuffer(): Uint8Array | undefined {
    return this.#lastBuffer
  }

  /** What follows. It must not change; what is left of the chunk before goes first. */
  push(chunk: Uint8Array): void {
    const left = this.#chunk.length - this.#at
    if (left === 0) {
      // Not a Buffer, whose `slice` copies nothing, though whoever keeps a part of a frame means it to.
      this.#chunk = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length)
    } else {
      const both = new Uint8Array(left + chunk.length)
      both.set(this.#chunk.subarray(this.#at))
      both.set(chunk, left)
      this.#chunk = both
    }
    this.#at = 0
  }

  /** The next frame without its length, if it is whole. Throws what `admit` throws. */
  next(): Uint8Array | undefined {
    if (this.#buffer === undefined) {
      if (!this.#readLength()) return undefined
      const sizeBytes = readInt32(this.#length, 0)
      this.#held = !this.#admit(sizeBytes)
      if (this.#held) return undefined
      this.#lengthAt = 0
      this.#lastBuffer = undefined
      if (this.#chunk.length - this.#at >= sizeBytes) return this.#take(sizeBytes)
      this.#buffer = this.#pool.take(sizeBytes)
      this.#frameBytes = sizeBytes
      this.#frameAt = 0
    }
    return this.#fill(this.#buffer)
  }

  #fill(buffer: Uint8Array): Uint8Array | undefined {
    const part = this.#take(Math.min(this.#frameBytes - this.#frameAt, this.#chunk.length - this.#at))
    buffer.set(part, this.#frameAt)
    this.#frameAt += part.length
    if (this.#frameAt === this.#frameBytes) {
      this.#buffer = undefined
      this.#lastBuffer = buffer
      return buffer.subarray(0, this.#frameBytes)
    }
    this.#chunk = NOTHING
    this.#at = 0
    return undefined
  }

  #take(sizeBytes: number): Uint8Array {
    const from = this.#at
    this.#at += sizeBytes
    return this.#chunk.subarray(from, this.#at)
  }

  /** Whether all of the length is there. */
  #readLength(): boolean {
    while (this.#lengthAt < LENGTH_BYTES && this.#at < this.#chunk.length) {
      this.#length[this.#lengthAt++] = this.#chunk[this.#at++] as number
    }
    return this.#lengthAt === LENGTH_BYTES
  }
}
