/**
 * CRC-32C by the processor, where the optional package `@node-rs/crc32` is installed and loads: four times as fast
 * as ours. Ours does the rest, and short inputs, where a call out of JavaScript costs more than the sum.
 *
 * Loading the package takes 10 ms and 11 MiB, which a broker with little to sum never gets back. So ours sums what comes
 * first, until it has lost as much time as loading takes; then the package is loaded, and takes over when it is there.
 * It is one function all the while, since what calls it in a loop is compiled for that one.
 *
 * A wrong checksum would be written to disk and sent to others, so the package is believed only once it has
 * agreed with ours, also about a sum that goes on.
 */
import { type Crc32c, crc32c as ours } from '../log/format/crc32c.ts'
import { MiB } from '../model/limits.ts'
import { type LoadPackage, loadPackage } from './packages.ts'

const PACKAGE = '@node-rs/crc32'
/** Inputs shorter than this are summed in JavaScript (docs/decisions/017-native-crc.md). */
const NATIVE_FROM_BYTES = 160
/** What ours sums of longer ones before the package is looked for (docs/decisions/039-start-and-idle.md). */
export const OURS_UNTIL_BYTES: number = 16 * MiB

type Native = (bytes: Uint8Array, previous: number) => number

/** The sum that is fastest here, and a way to have it before it has shown that it is needed. Never fails. */
export interface LazyCrc32c {
  readonly crc32c: Crc32c
  ready(): Promise<void>
}

const shared = crc32cWith(loadPackage)

/** For whoever may have little to sum: the package is loaded when there was much. The same function every time. */
export function lazyCrc32c(): Crc32c {
  return shared.crc32c
}

/** For whoever has much to sum: the same function, once the package was looked for. */
export async function loadCrc32c(): Promise<Crc32c> {
  await shared.ready()
  return shared.crc32c
}

/** The same with the package that `load` finds. */
export function crc32cWith(load: LoadPackage): LazyCrc32c {
  let native: Native | undefined
  let looking: Promise<void> | undefined
  let left = OURS_UNTIL_BYTES

  const ready = (): Promise<void> => {
    looking ??= nativeOf(load).then((found) => {
      native = found
    })
    return looking
  }
  const crc32c: Crc32c = (bytes, previous = 0, from = 0, to = bytes.length) => {
    const size = to - from
    if (size < NATIVE_FROM_BYTES) return ours(bytes, previous, from, to)
    if (native !== undefined)
      return native(size === bytes.length ? bytes : bytes.subarray(from, to), previous)
    left -= size
    if (left <= 0) void ready()
    return ours(bytes, previous, from, to)
  }
  return { crc32c, ready }
}

async function nativeOf(load: LoadPackage): Promise<Native | undefined> {
  try {
    const { crc32c } = (await load(PACKAGE)) as { readonly crc32c: Native }
    return agrees(crc32c) ? crc32c : undefined
  } catch {
    // Not installed, or not for this platform: ours is as right, only slower.
    return undefined
  }
}

function agrees(native: Native): boolean {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i * 167)
  const head = bytes.subarray(0, 333)
  const tail = bytes.subarray(333)
  return native(bytes, 0) === ours(bytes) && native(tail, native(head, 0)) === ours(bytes)
}
