/**
 * Puts Kafka's primitive types into a frame. Small things are copied together; large bytes (batches on their way to a
 * consumer) stay where they are, and become pieces of their own:
 *
 *   buffer   │ length, header, fields │ fields │          written here
 *   pieces   └────────────────────────┘ batches └──►      handed to the socket in this order
 *
 * Most frames are small, and making a buffer costs more than filling it: what one writer leaves of its buffer, the next
 * one takes. Only one has it at a time, and what was written is never written again.
 */
import { writeInt16, writeInt32, writeInt64 } from '../log/format/integers.ts'
import { writeUtf8 } from '../log/format/text.ts'
import { assert } from '../model/errors.ts'
import { UUID_BYTES, writeUuid } from './uuid.ts'

const FIRST_BUFFER_BYTES = 8_192
const MAX_BUFFER_BYTES = 65_536
/** What is left of a buffer is given on where it is at least this. */
const WORTH_KEEPING_BYTES = 512
/** Below this a copy is cheaper than another piece. */
const LARGE_BYTES = 2_048
const LENGTH_BYTES = 4
const TWO_POW_63 = 2 ** 63
const MAX_INT64 = Uint8Array.of(0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)

const NO_BUFFER = new Uint8Array(0)

/** The buffer that the last writer gave on, and where it is free. */
let spare: Uint8Array = NO_BUFFER
let spareFrom = 0

export class WireWriter {
  readonly #pieces: Uint8Array[] = []
  #buffer: Uint8Array = NO_BUFFER
  /** Bytes of the buffer from here to `#at` are in no piece yet. */
  #from = 0
  #at = 0
  #pieceBytes = 0

  get sizeBytes(): number {
    return this.#pieceBytes + this.#at - this.#from
  }

  int8(value: number): void {
    const at = this.#make(1)
    this.#buffer[at] = value
  }

  boolean(value: boolean): void {
    this.int8(value ? 1 : 0)
  }

  int16(value: number): void {
    const at = this.#make(2)
    writeInt16(this.#buffer, at, value)
  }

  int32(value: number): void {
    const at = this.#make(4)
    writeInt32(this.#buffer, at, value)
  }

  /** The largest, which reading rounds up to 2^63, is written as it was. */
  int64(value: number): void {
    assert(Number.isInteger(value), 'a 64-bit integer is an integer')
    const at = this.#make(8)
    if (value < TWO_POW_63) writeInt64(this.#buffer, at, value)
    else this.#buffer.set(MAX_INT64, at)
  }

  float64(value: number): void {
    const at = this.#make(8)
    new DataView(this.#buffer.buffer).setFloat64(at, value)
  }

  /** 22 characters of base64url, as Kafka prints it. */
  uuid(value: string): void {
    const at = this.#make(UUID_BYTES)
    writeUuid(this.#buffer, at, value)
  }

  uvarint(value: number): void {
    let rest = value >>> 0
    while (rest >= 0x80) {
      this.int8(rest | 0x80)
      rest >>>= 7
    }
    this.int8(rest)
  }

  /** The bytes of `value`, whose length in UTF-8 is `sizeBytes`. */
  text(value: string, sizeBytes: number): void {
    const at = this.#make(sizeBytes)
    writeUtf8(this.#buffer, at, value)
  }

  /** Not copied where it is large: it must not change until it is sent. */
  bytes(value: Uint8Array): void {
    if (value.length < LARGE_BYTES) {
      const at = this.#make(value.length)
      this.#buffer.set(value, at)
      return
    }
    this.#cut()
    this.#pieces.push(value)
    this.#pieceBytes += value.length
  }

  /** What `other` holds. The other one is used up. */
  append(other: WireWriter): void {
    for (const piece of other.pieces()) this.bytes(piece)
  }

  /** Leaves room for the length of a frame. */
  startFrame(): void {
    this.#make(LENGTH_BYTES)
  }

  /** The frame, its length in front. */
  finishFrame(): Uint8Array[] {
    const pieces = this.pieces()
    writeInt32(pieces[0] as Uint8Array, 0, this.#pieceBytes - LENGTH_BYTES)
    return pieces
  }

  /** Everything that was written. The writer is used up. */
  pieces(): Uint8Array[] {
    this.#cut()
    if (this.#buffer.length - this.#at >= WORTH_KEEPING_BYTES) {
      spare = this.#buffer
      spareFrom = this.#at
    }
    this.#buffer = NO_BUFFER
    this.#from = this.#at = 0
    return this.#pieces
  }

  /** Makes a piece of what the buffer holds. */
  #cut(): void {
    if (this.#at === this.#from) return
    this.#pieces.push(this.#buffer.subarray(this.#from, this.#at))
    this.#pieceBytes += this.#at - this.#from
    this.#from = this.#at
  }

  /** Where `sizeBytes` bytes may be written. */
  #make(sizeBytes: number): number {
    if (this.#at + sizeBytes > this.#buffer.length) this.#takeBuffer(sizeBytes)
    const at = this.#at
    this.#at += sizeBytes
    return at
  }

  #takeBuffer(sizeBytes: number): void {
    this.#cut()
    if (this.#buffer === NO_BUFFER && spareFrom + sizeBytes <= spare.length) {
      this.#buffer = spare
      this.#from = this.#at = spareFrom
      spare = NO_BUFFER
      spareFrom = 0
      return
    }
    const next = Math.min(this.#buffer.length * 2, MAX_BUFFER_BYTES)
    this.#buffer = new Uint8Array(Math.max(next, FIRST_BUFFER_BYTES, sizeBytes))
    this.#from = this.#at = 0
  }
}
