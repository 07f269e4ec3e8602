/**
 * Big-endian integers of fixed width. By hand, because a DataView for the fifty bytes of a batch header costs
 * more than reading them. The caller has checked that the bytes are there.
 */
const TWO_POW_32 = 2 ** 32

export function readInt8(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 24) >> 24
}

export function readInt16(bytes: Uint8Array, at: number): number {
  return (((bytes[at] as number) << 24) >> 16) | (bytes[at + 1] as number)
}

export function readInt32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  )
}

/** Rounded beyond 2^53. */
export function readInt64(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) * TWO_POW_32 + (readInt32(bytes, at + 4) >>> 0)
}

export function writeInt16(out: Uint8Array, at: number, value: number): void {
  out[at] = value >> 8
  out[at + 1] = value
}

export function writeInt32(out: Uint8Array, at: number, value: number): void {
  out[at] = value >> 24
  out[at + 1] = value >> 16
  out[at + 2] = value >> 8
  out[at + 3] = value
}

export function writeInt64(out: Uint8Array, at: number, value: number): void {
  writeInt32(out, at, Math.floor(value / TWO_POW_32))
  writeInt32(out, at + 4, value)
}
