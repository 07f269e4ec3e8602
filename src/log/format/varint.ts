/**
 * Zigzag varints, as records use them for lengths and deltas: seven bits a byte, low ones first, the top bit
 * says that another byte follows; the sign sits in the lowest bit. `varint` is 32 bits wide (five bytes at
 * most), `varlong` 64 (ten bytes), of which we take what a number holds exactly (±2^53).
 *
 * `ByteReader` never reads past its end and never answers a value that was not there: whatever is wrong
 * becomes one CORRUPT_LOG.
 */
import { OdradekError } from '../../model/errors.ts'

const TWO_POW_28 = 2 ** 28
const MAX_VARLONG_BYTES = 10

/** Bytes of a 32-bit integer as a varint. */
export function varintSize(value: number): number {
  const zigzag = ((value << 1) ^ (value >> 31)) >>> 0
  if (zigzag < 0x80) return 1
  if (zigzag < 0x4000) return 2
  if (zigzag < 0x20_0000) return 3
  return zigzag < 0x1000_0000 ? 4 : 5
}

/** Writes a 32-bit integer; answers the position after it. */
export function writeVarint(out: Uint8Array, at: number, value: number): number {
  let zigzag = ((value << 1) ^ (value >> 31)) >>> 0
  while (zigzag >= 0x80) {
    out[at++] = zigzag | 0x80
    zigzag >>>= 7
  }
  out[at++] = zigzag
  return at
}

/** Bytes of a safe integer as a varlong. */
export function varlongSize(value: number): number {
  if (value === (value | 0)) return varintSize(value)
  let rest = magnitude(value)
  let size = 1
  for (rest = Math.floor(rest / 0x40); rest > 0; rest = Math.floor(rest / 0x80)) size++
  return size
}

/** Writes a safe integer; answers the position after it. */
export function writeVarlong(out: Uint8Array, at: number, value: number): number {
  if (value === (value | 0)) return writeVarint(out, at, value)
  // Doubling would lose the lowest bit beyond 2^53, so the sign joins the first six bits only.
  const all = magnitude(value)
  let group = (all % 0x40) * 2 + (value < 0 ? 1 : 0)
  for (let rest = Math.floor(all / 0x40); rest > 0; rest = Math.floor(rest / 0x80)) {
    out[at++] = group | 0x80
    group = rest % 0x80
  }
  out[at++] = group
  return at
}

/** Zigzag without its sign bit: 0 for 0 and −1, 1 for 1 and −2. */
function magnitude(value: number): number {
  return value < 0 ? -value - 1 : value
}

/** A position in bytes that moves forward, up to `end` (which its owner may move within the bytes). */
export class ByteReader {
  readonly bytes: Uint8Array
  at: number
  end: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  byte(): number {
    if (this.at >= this.end) throw corrupt('a record ends in the middle of a field')
    return this.bytes[this.at++] as number
  }

  varint(): number {
    let zigzag = this.byte()
    if (zigzag >= 0x80) {
      zigzag &= 0x7f
      for (let shift = 7; ; shift += 7) {
        const byte = this.byte()
        if (shift === 28 && byte > 0x0f) throw corrupt('a varint is longer than 32 bits')
        zigzag |= (byte & 0x7f) << shift
        if (byte < 0x80) break
      }
    }
    return (zigzag >>> 1) ^ -(zigzag & 1)
  }

  varlong(): number {
    let low = this.byte()
    if (low < 0x80) return (low >>> 1) ^ -(low & 1)
    low &= 0x7f
    let high = 0
    let scale = 0x80
    for (let read = 2; ; read++) {
      const byte = this.byte()
      if (read < 5) low += (byte & 0x7f) * scale
      else high += (byte & 0x7f) * (scale / TWO_POW_28)
      if (byte < 0x80) break
      if (read === MAX_VARLONG_BYTES) throw corrupt('a varlong is longer than 64 bits')
      scale *= 0x80
    }
    const half = Math.floor(low / 2) + high * (TWO_POW_28 / 2)
    if (half > Number.MAX_SAFE_INTEGER) throw corrupt('a varlong is beyond 2^53')
    return low % 2 === 1 ? -half - 1 : half
  }

  /** Moves over `length` bytes; answers where they began. */
  skip(length: number): number {
    if (length > this.end - this.at) throw corrupt('a field reaches beyond its record')
    const start = this.at
    this.at += length
    return start
  }
}

export function corrupt(what: string): OdradekError {
  return new OdradekError('CORRUPT_LOG', what)
}
