/**
 * The CRC-32C of two things in a row from that of each, without another look at the bytes. Batches carry their own sum, and
 * the journal and segments sum over whole batches: so most bytes are summed once, and not three times.
 *
 * A sum is a polynomial over GF(2) modulo one of degree 32. What comes after multiplies what came before by x for every bit
 * that it is long, and adds itself; powers of x are made from their squares.
 */
import type { Crc32c } from './crc32c.ts'
import { readInt32 } from './integers.ts'
import { ATTRIBUTES_AT, CRC_AT, PREFIX_BYTES, SIZE_AT } from './layout.ts'

const REVERSED_POLYNOMIAL = 0x82f63b78
/** Bits are reversed: the highest one is x to the 0. */
const ONE = 1 << 31
/** x to the power of 2, 4, 8 ...: each the square of the one before. */
const SQUARES = Int32Array.from({ length: 32 })
SQUARES[0] = 1 << 30
for (let i = 1; i < SQUARES.length; i++) SQUARES[i] = product(squareAt(i - 1), squareAt(i - 1))

/** Batches shorter than this are summed in less time than it takes to join sums. */
export const JOINED_FROM_BYTES: number = 8 * 1024

function squareAt(i: number): number {
  return SQUARES[i] as number
}

function product(a: number, b: number): number {
  let sum = 0
  let left = a
  let times = b
  while (left !== 0) {
    if (left < 0) sum ^= times
    left <<= 1
    times = times & 1 ? (times >>> 1) ^ REVERSED_POLYNOMIAL : times >>> 1
  }
  return sum
}

/** The sum of what `first` is of, and after it `lengthBytes` bytes that `second` is of. */
export function joinedCrc32c(first: number, second: number, lengthBytes: number): number {
  let power = ONE
  // Bytes are eight bits.
  for (let left = lengthBytes, i = 3; left > 0; left = Math.floor(left / 2), i++) {
    if (left % 2 === 1) power = product(squareAt(i), power)
  }
  return (product(power, first) ^ second) >>> 0
}

/**
 * `crc32c(batches, previous)` for whole batches whose own sums are known to be right: of large ones only what their sums leave
 * out is looked at, small ones are summed with their neighbours. From where a length does not fit, all bytes are summed.
 */
export function crc32cOfBatches(batches: Uint8Array, previous: number | undefined, crc32c: Crc32c): number {
  let crc = previous
  let summed = 0
  for (let at = 0; at + CRC_AT < batches.length; ) {
    const sizeBytes = readInt32(batches, at + SIZE_AT) + PREFIX_BYTES
    const end = at + sizeBytes
    if (sizeBytes <= CRC_AT || end > batches.length) break
    if (sizeBytes >= JOINED_FROM_BYTES) {
      const front = crc32c(batches, crc, summed, at + ATTRIBUTES_AT)
      crc = joinedCrc32c(front, readInt32(batches, at + CRC_AT) >>> 0, sizeBytes - ATTRIBUTES_AT)
      summed = end
    }
    at = end
  }
  return summed === batches.length && crc !== undefined ? crc : crc32c(batches, crc, summed)
}
