/**
 * Takes frames out of the chunks that a socket delivers. A frame is a length and as many bytes:
 *
 *   chunks   │ 4 │ frame │ 4 │ fra│me │ 4 │ frame │ 4 …
 *                  view        └──┴─ one buffer of the exact size, filled piece by piece
 *
 * A frame that is whole in a chunk is a view of it; every byte of another one is copied once. A length is checked, and
 * room asked for, before anything is made for it.
 */
import { OdradekError } from '../model/errors.ts'

const LENGTH_BYTES = 4
const NOTHING = new Uint8Array(0)
/** What speaks first on a plaintext port, and is not Kafka's protocol: its first bytes, as the length they would be. */
const FOREIGN: readonly (readonly [first: RegExp, what: string])[] = [
  [/^\x16\x03/, 'a TLS handshake on a plaintext port: the client has TLS on, and this listener has not'],
  [/^(?:GET|PUT) |^(?:HEAD|POST|OPTI|PATC|DELE|CONN)/, "an HTTP request, on a port of Kafka's protocol"],
  [/^SSH-/, "a client of SSH, on a port of Kafka's protocol"],
]

export interface FrameRules {
  /** The largest frame now. */
  readonly maxBytes: number
  /** Which option raises it. */
  readonly maxBytesBy: string
  /** Whether there is room for a frame of that size; if so it is taken. Asked again whenever `next` is called. */
  admit(sizeBytes: number): boolean
}

export class FrameReader {
  readonly #rules: FrameRules
  #chunk: Uint8Array = NOTHING
  #at = 0
  /** Bytes of the length that were read, of those that are known. */
  #lengthRead = 0
  readonly #length = new Uint8Array(LENGTH_BYTES)
  /** The frame that is being filled. */
  #frame: Uint8Array | undefined
  #filled = 0
  #held = false

  constructor(rules: FrameRules) {
    this.#rules = rules
  }

  /** A frame waits for room. */
  get held(): boolean {
    return this.#held
  }

  /** Bytes of room taken by a frame that is not complete. */
  get takenBytes(): number {
    return this.#frame?.length ?? 0
  }

  /** The chunk must not change. What is left of the one before stays in front of it. */
  push(chunk: Uint8Array): void {
    const left = this.#chunk.length - this.#at
    if (left === 0) {
      this.#chunk = chunk
    } else {
      const both = new Uint8Array(left + chunk.length)
      both.set(this.#chunk.subarray(this.#at))
      both.set(chunk, left)
      this.#chunk = both
    }
    this.#at = 0
  }

  /** The next frame, if it is complete. @throws OdradekError PROTOCOL_ERROR for a length that cannot be one */
  next(): Uint8Array | undefined {
    if (this.#frame === undefined) {
      if (!this.#readLength()) return undefined
      const sizeBytes = this.#checkedLength()
      this.#held = !this.#rules.admit(sizeBytes)
      if (this.#held) return undefined
      this.#lengthRead = 0
      if (this.#chunk.length - this.#at >= sizeBytes) return this.#view(sizeBytes)
      this.#frame = new Uint8Array(sizeBytes)
      this.#filled = 0
    }
    return this.#fill(this.#frame)
  }

  #view(sizeBytes: number): Uint8Array {
    const frame = this.#chunk.subarray(this.#at, this.#at + sizeBytes)
    this.#at += sizeBytes
    return frame
  }

  #fill(frame: Uint8Array): Uint8Array | undefined {
    const part = this.#view(Math.min(frame.length - this.#filled, this.#chunk.length - this.#at))
    frame.set(part, this.#filled)
    this.#filled += part.length
    if (this.#filled < frame.length) {
      this.#chunk = NOTHING
      this.#at = 0
      return undefined
    }
    this.#frame = undefined
    return frame
  }

  /** Whether all bytes of the length are there. */
  #readLength(): boolean {
    while (this.#lengthRead < LENGTH_BYTES) {
      const byte = this.#chunk[this.#at]
      if (byte === undefined) return false
      this.#length[this.#lengthRead++] = byte
      this.#at++
    }
    return true
  }

  #checkedLength(): number {
    const [a, b, c, d] = this.#length as unknown as readonly [number, number, number, number]
    const sizeBytes = (a << 24) | (b << 16) | (c << 8) | d
    const { maxBytes, maxBytesBy } = this.#rules
    if (sizeBytes >= 0 && sizeBytes <= maxBytes) return sizeBytes
    const first = String.fromCharCode(a, b, c, d)
    const foreign = FOREIGN.find(([pattern]) => pattern.test(first))?.[1]
    throw new OdradekError(
      'PROTOCOL_ERROR',
      foreign !== undefined
        ? `this looks like ${foreign}`
        : sizeBytes < 0
          ? `a request of ${sizeBytes} bytes: the client does not speak Kafka's protocol`
          : `a request of ${sizeBytes} bytes; at most ${maxBytes} are taken (${maxBytesBy})`,
    )
  }
}
