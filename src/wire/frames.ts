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
 * Whoever knows that nothing of a frame is looked at any more may say so. Its buffer is then used again; and a chunk is
 * given up when all of it was taken, and all frames that are views of it are done with. One frame of which that is never
 * said keeps its memory, as if there were no such thing.
 */
import { capacityFor } from '../log/format/buffer-pool.ts'
import { readInt32 } from '../log/format/integers.ts'

const LENGTH_BYTES = 4
const NOTHING = new Uint8Array(0)

/** Where buffers come from, and where buffers and chunks go that nobody looks at any more. */
export interface FrameMemory {
  /** `capacityFor(sizeBytes)` bytes. */
  take(sizeBytes: number): Uint8Array
  give(buffer: Uint8Array): void
  /** A chunk that was pushed. */
  drop(chunk: Uint8Array): void
}

/** All of it is left to the garbage collector. */
const NO_MEMORY: FrameMemory = {
  take: (sizeBytes) => new Uint8Array(capacityFor(sizeBytes)),
  give: () => {},
  drop: () => {},
}

/** A chunk, and how many look at it: the reader, until all is taken, and views. */
class Chunk {
  readonly #bytes: Uint8Array
  readonly #memory: FrameMemory
  #lookers = 1

  constructor(bytes: Uint8Array, memory: FrameMemory) {
    this.#bytes = bytes
    this.#memory = memory
  }

  viewed(): void {
    this.#lookers++
  }

  readonly done = (): void => {
    if (--this.#lookers === 0) this.#memory.drop(this.#bytes)
  }
}

const nothing = (): void => {}

export class FrameReader {
  readonly #admit: (sizeBytes: number) => boolean
  readonly #memory: FrameMemory
  #chunk: Uint8Array = NOTHING
  #source: Chunk | undefined
  #at = 0
  readonly #length = new Uint8Array(LENGTH_BYTES)
  #lengthAt = 0
  /** What the next frame is put together in, if it is. */
  #buffer: Uint8Array | undefined
  #frameBytes = 0
  #frameAt = 0
  #lastDone: () => void = nothing
  #held = false

  /**
   * `admit` is asked before a frame of that size, negative as it may be, is read: it throws for one that cannot be, and
   * answers false for one that has to wait, which it is then asked for again with the next call of `next`.
   */
  constructor(admit: (sizeBytes: number) => boolean, memory: FrameMemory = NO_MEMORY) {
    this.#admit = admit
    this.#memory = memory
  }

  /** The next frame was not admitted yet. */
  get held(): boolean {
    return this.#held
  }

  /** What the frame takes that was admitted and is not whole: what its size is rounded up to. */
  get heldBytes(): number {
    return this.#buffer?.length ?? 0
  }

  /** To be called once, when nobody looks at the frame any more that `next` answered last, if that is known. */
  get lastDone(): () => void {
    return this.#lastDone
  }

  /** What follows. It must not change, and is the reader's now; what is left of the chunk before goes first. */
  push(chunk: Uint8Array): void {
    // Not a Buffer, whose `slice` copies nothing, though whoever keeps a part of a frame means it to.
    let bytes = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length)
    const left = this.#chunk.length - this.#at
    if (left > 0) {
      const both = new Uint8Array(left + chunk.length)
      both.set(this.#chunk.subarray(this.#at))
      both.set(bytes, left)
      this.#memory.drop(bytes)
      bytes = both
    }
    this.#leave()
    this.#chunk = bytes
    this.#source = new Chunk(bytes, this.#memory)
  }

  /** The next frame without its length, if it is whole. Throws what `admit` throws. */
  next(): Uint8Array | undefined {
    const frame = this.#next()
    if (this.#at === this.#chunk.length) this.#leave()
    return frame
  }

  #next(): Uint8Array | undefined {
    if (this.#buffer === undefined) {
      if (!this.#readLength()) return undefined
      const sizeBytes = readInt32(this.#length, 0)
      this.#held = !this.#admit(sizeBytes)
      if (this.#held) return undefined
      this.#lengthAt = 0
      if (this.#chunk.length - this.#at >= sizeBytes) return this.#view(sizeBytes)
      this.#buffer = this.#memory.take(sizeBytes)
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
      this.#lastDone = () => this.#memory.give(buffer)
      return buffer.subarray(0, this.#frameBytes)
    }
    return undefined
  }

  #view(sizeBytes: number): Uint8Array {
    const source = this.#source as Chunk
    source.viewed()
    this.#lastDone = source.done
    return this.#take(sizeBytes)
  }

  /** The chunk is behind us. */
  #leave(): void {
    this.#source?.done()
    this.#source = undefined
    this.#chunk = NOTHING
    this.#at = 0
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
