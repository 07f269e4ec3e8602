/**
 * CRC-32C (Castagnoli) in plain JavaScript, for where no native one is injected. Slicing by 16: table `k`
 * answers what a byte does to the sum after `k` more bytes, so that sixteen bytes are sixteen independent
 * lookups. A quarter faster than slicing by 8 here, and a table per slice beats one flat table.
 */
const REVERSED_POLYNOMIAL = 0x82f63b78
const SLICES = 16

const [T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14, T15] = buildTables() as Tables

type Four = [Int32Array, Int32Array, Int32Array, Int32Array]
type Tables = [...Four, ...Four, ...Four, ...Four]

function buildTables(): Int32Array[] {
  const all = new Int32Array(256)
  for (let bit = 128, crc = 1; bit > 0; bit >>= 1) {
    crc = crc & 1 ? (crc >>> 1) ^ REVERSED_POLYNOMIAL : crc >>> 1
    for (let i = 0; i < 256; i += 2 * bit) all[i + bit] = (all[i] as number) ^ crc
  }
  const tables = [all]
  for (let slice = 1; slice < SLICES; slice++) {
    const table = (tables[slice - 1] as Int32Array).slice()
    for (let i = 0; i < 256; i++) {
      const crc = table[i] as number
      table[i] = (all[crc & 255] as number) ^ (crc >>> 8)
    }
    tables.push(table)
  }
  return tables
}

/** What `table` makes of the low byte of `x`. */
function of(table: Int32Array, x: number): number {
  return table[x & 255] as number
}

function byte(bytes: Uint8Array, i: number): number {
  return bytes[i] as number
}

/**
 * The checksum, as an unsigned 32-bit number. `previous` is the checksum of what comes before `bytes`, which
 * then go on with it: `crc32c(b, crc32c(a))` is that of a and b in one piece. Of the bytes from `from` to `to` alone,
 * where a view of them would cost as much as their sum.
 */
export type Crc32c = (bytes: Uint8Array, previous?: number, from?: number, to?: number) => number

export function crc32c(
  bytes: Uint8Array,
  previous: number = 0,
  from: number = 0,
  to: number = bytes.length,
): number {
  let crc = ~previous
  let i = from
  for (const last = to - SLICES; i <= last; i += SLICES) {
    crc =
      of(T15, byte(bytes, i) ^ crc) ^
      of(T14, byte(bytes, i + 1) ^ (crc >>> 8)) ^
      of(T13, byte(bytes, i + 2) ^ (crc >>> 16)) ^
      of(T12, byte(bytes, i + 3) ^ (crc >>> 24)) ^
      of(T11, byte(bytes, i + 4)) ^
      of(T10, byte(bytes, i + 5)) ^
      of(T9, byte(bytes, i + 6)) ^
      of(T8, byte(bytes, i + 7)) ^
      of(T7, byte(bytes, i + 8)) ^
      of(T6, byte(bytes, i + 9)) ^
      of(T5, byte(bytes, i + 10)) ^
      of(T4, byte(bytes, i + 11)) ^
      of(T3, byte(bytes, i + 12)) ^
      of(T2, byte(bytes, i + 13)) ^
      of(T1, byte(bytes, i + 14)) ^
      of(T0, byte(bytes, i + 15))
  }
  for (; i < to; i++) crc = of(T0, byte(bytes, i) ^ crc) ^ (crc >>> 8)
  return ~crc >>> 0
}
