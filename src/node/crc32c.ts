/**
 * CRC-32C by the processor, where the optional package `@node-rs/crc32` is installed and loads: four times as fast
 * as ours. Ours does the rest, and short inputs, where a call out of JavaScript costs more than the sum.
 *
 * A wrong checksum would be written to disk and sent to others, so the package is believed only once it has
 * agreed with ours, also about a sum that goes on.
 */
import { type Crc32c, crc32c as ours } from '../log/format/crc32c.ts'
import { type LoadPackage, loadPackage } from './packages.ts'

const PACKAGE = '@node-rs/crc32'
/** Inputs shorter than this are summed in JavaScript (docs/decisions/017-native-crc.md). */
const NATIVE_FROM_BYTES = 160

type Native = (bytes: Uint8Array, previous: number) => number

/** One for each, however often it is loaded: what calls it in a loop is compiled for that one, and thrown away for another. */
const mixed = new WeakMap<Native, Crc32c>()

function mixedWith(native: Native): Crc32c {
  return (bytes, previous = 0, from = 0, to = bytes.length) => {
    if (to - from < NATIVE_FROM_BYTES) return ours(bytes, previous, from, to)
    return native(to - from === bytes.length ? bytes : bytes.subarray(from, to), previous)
  }
}

/** The fastest CRC-32C that is to be had here. Never fails. */
export async function loadCrc32c(load: LoadPackage = loadPackage): Promise<Crc32c> {
  try {
    const { crc32c: native } = (await load(PACKAGE)) as { readonly crc32c: Native }
    if (!agrees(native)) return ours
    const made = mixed.get(native) ?? mixedWith(native)
    mixed.set(native, made)
    return made
  } catch {
    // Not installed, or not for this platform: ours is as right, only slower.
    return ours
  }
}

function agrees(native: Native): boolean {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i * 167)
  const head = bytes.subarray(0, 333)
  const tail = bytes.subarray(333)
  return native(bytes, 0) === ours(bytes) && native(tail, native(head, 0)) === ours(bytes)
}
