/**
 * Takes Kafka's primitive types from one frame. Everything is checked before it is believed: nothing is read beyond
 * the frame, no length is negative, and no count is larger than what could still follow, so that a frame never makes
 * anybody allocate more than a small multiple of itself. Whatever is wrong is one PROTOCOL_ERROR that says where.
 *
 * Bytes are views of the frame, not copies.
 *
 * Source: "Protocol Primitive Types" of Kafka's protocol guide; KIP-482 for the compact ones.
 */
import { readInt8, readInt16, readInt32, readInt64 } from '../log/format/integers.ts'
import { readUtf8 } from '../log/format/text.ts'
import { OdradekError } from '../model/errors.ts'
import { UUID_BYTES, uuidText } from './uuid.ts'

const MAX_UVARINT_BYTES = 5
/** No bound but that of the frame. */
const ANY_ITEMS = 2 ** 30

export class WireReader {
  readonly bytes: Uint8Array
  at: number
  #itemsLeft: number

  /** `maxItems`: of all lists together. An item takes a byte here, and an object once it is read. */
  constructor(bytes: Uint8Array, at: number = 0, maxItems: number = ANY_ITEMS) {
    this.bytes = bytes
    this.at = at
    this.#itemsLeft = maxItems
  }

  /** So many items follow, of so many bytes at least. */
  items(count: number, minBytes: number): void {
    if (count * minBytes > this.left) {
      throw this.malformed(`there is no room for ${count} items in ${this.left} bytes`)
    }
    this.#itemsLeft -= count
    if (this.#itemsLeft < 0) throw this.malformed(`${count} items, which are too many for one request`)
  }

  /** Bytes that are left. */
  get left(): number {
    return this.bytes.length - this.at
  }

  int8(): number {
    return readInt8(this.bytes, this.#take(1))
  }

  /** Anything but 0 is true, as Kafka takes it. */
  boolean(): boolean {
    return this.int8() !== 0
  }

  int16(): number {
    return readInt16(this.bytes, this.#take(2))
  }

  uint16(): number {
    return readInt16(this.bytes, this.#take(2)) & 0xffff
  }

  int32(): number {
    return readInt32(this.bytes, this.#take(4))
  }

  uint32(): number {
    return readInt32(this.bytes, this.#take(4)) >>> 0
  }

  /** Rounded beyond ±2^53, where no offset, time or id of ours is. */
  int64(): number {
    return readInt64(this.bytes, this.#take(8))
  }

  float64(): number {
    const at = this.#take(8)
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + at, 8).getFloat64(0)
  }

  /** As Kafka prints it: 22 characters of base64url. */
  uuid(): string {
    return uuidText(this.bytes, this.#take(UUID_BYTES))
  }

  /** 32 bits without a sign, seven a byte, low ones first. */
  uvarint(): number {
    let value = 0
    let scale = 1
    for (let read = 1; ; read++) {
      const byte = this.bytes[this.#take(1)] as number
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      if (read === MAX_UVARINT_BYTES) throw this.malformed('a varint is longer than 32 bits')
      scale *= 0x80
    }
    if (value > 0xffff_ffff) throw this.malformed('a varint is longer than 32 bits')
    return value
  }

  /** What is not UTF-8 becomes U+FFFD. */
  text(sizeBytes: number): string {
    const from = this.#take(sizeBytes)
    return readUtf8(this.bytes, from, from + sizeBytes)
  }

  /** A view. */
  view(sizeBytes: number): Uint8Array {
    const from = this.#take(sizeBytes)
    return this.bytes.subarray(from, from + sizeBytes)
  }

  /** Moves over `sizeBytes` bytes; answers where they begin. */
  #take(sizeBytes: number): number {
    const from = this.at
    if (sizeBytes > this.bytes.length - from) {
      throw this.malformed(`${sizeBytes} bytes should follow, but there are ${this.bytes.length - from}`)
    }
    this.at = from + sizeBytes
    return from
  }

  malformed(what: string): OdradekError {
    return new OdradekError('PROTOCOL_ERROR', `malformed frame, at byte ${this.at}: ${what}`)
  }
}
