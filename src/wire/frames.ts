/**
 * Cuts a stream of bytes into frames. A frame that lies whole within one chunk is a view of it; of one that does not,
 * the bytes are put together once, in a buffer of its exact size. The length is checked before anything is made for it.
 *
 *   chunks   │ len frame len fra│me len│ fra│me │
 */
import { readInt32 } from '../log/format/integers.ts'
import { OdradekError } from '../model/errors.ts'

const LENGTH_BYTES = 4

export class FrameReader {
  readonly #length = new Uint8Array(LENGTH_BYTES)
  #lengthAt = 0
  /** The frame that is being put together. */
  #frame: Uint8Array | undefined
  #frameAt = 0

  /** Bytes that are held for a frame that is not whole yet. */
  get heldBytes(): number {
    return this.#frame?.length ?? 0
  }

  /**
   * The frames that end in `chunk`, in order, without their lengths. `maxBytes` is asked anew for each.
   * @throws OdradekError PROTOCOL_ERROR for a length that is negative or above `maxBytes`
   */
  *push(chunk: Uint8Array, maxBytes: () => number): Generator<Uint8Array> {
    let at = 0
    while (at < chunk.length) {
      if (this.#frame === undefined) {
        at = this.#readLength(chunk, at)
        if (this.#lengthAt < LENGTH_BYTES) return
        const sizeBytes = checked(readInt32(this.#length, 0), maxBytes())
        this.#lengthAt = 0
        if (sizeBytes <= chunk.length - at) {
          at += sizeBytes
          yield chunk.subarray(at - sizeBytes, at)
          continue
        }
        this.#frame = new Uint8Array(sizeBytes)
        this.#frameAt = 0
      }
      const frame = this.#frame
      const part = chunk.subarray(at, at + frame.length - this.#frameAt)
      frame.set(part, this.#frameAt)
      this.#frameAt += part.length
      at += part.length
      if (this.#frameAt < frame.length) return
      this.#frame = undefined
      yield frame
    }
  }

  #readLength(chunk: Uint8Array, from: number): number {
    let at = from
    while (at < chunk.length && this.#lengthAt < LENGTH_BYTES) {
      this.#length[this.#lengthAt++] = chunk[at++] as number
    }
    return at
  }
}

function checked(sizeBytes: number, maxBytes: number): number {
  if (sizeBytes >= 0 && sizeBytes <= maxBytes) return sizeBytes
  throw new OdradekError('PROTOCOL_ERROR', `a frame of ${sizeBytes} bytes; at most ${maxBytes} are taken`)
}
