/**
 * The port through which compressed batches are read and written. The codecs themselves need Node or
 * packages, so the composition root injects them; without one, a compressed batch is refused by name.
 */
import { OdradekError } from '../../model/errors.ts'

/** Codec numbers in the low three bits of a batch's attributes. */
const COMPRESSION_NAMES = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

/** What a compressed records section may grow to: a small batch must not become all of memory. */
export const MAX_DECOMPRESSED_BYTES: number = 128 * 1024 * 1024

export interface CompressionPort {
  /** @throws OdradekError UNSUPPORTED when it does not have the codec. */
  compress(type: number, bytes: Uint8Array): Uint8Array
  /** @throws OdradekError UNSUPPORTED, or CORRUPT_LOG when the result is broken or larger than `maxBytes`. */
  decompress(type: number, bytes: Uint8Array, maxBytes: number): Uint8Array
  /**
   * For a port that looks for codecs when it is asked for them: resolves when it has, whether it found this one or not.
   * Before that the codec is not to be had; `undefined`: it has looked already, as ports without this have. Never fails.
   */
  ready?(type: number): Promise<void> | undefined
}

/**
 * Resolves when all of these codecs are ready, `undefined` where they are. `codecs` has a bit for each, the lowest for
 * no compression.
 */
export function codecsReady(port: CompressionPort, codecs: number): Promise<unknown> | undefined {
  if (codecs <= 1 || port.ready === undefined) return undefined
  const waits: Promise<void>[] = []
  for (let type = 1; codecs >> type > 0; type++) {
    const wait = (codecs >> type) % 2 === 1 ? port.ready(type) : undefined
    if (wait !== undefined) waits.push(wait)
  }
  return waits.length === 0 ? undefined : Promise.all(waits)
}

export const noCompression: CompressionPort = {
  compress: (type) => refuse(type),
  decompress: (type) => refuse(type),
}

/** For messages: a codec's name, or its number where Kafka has none. */
export function compressionName(type: number): string {
  return COMPRESSION_NAMES[type] ?? `codec ${type}`
}

/** The number of a codec that is asked for by its name, `uncompressed` as Kafka calls none. */
export function compressionNumber(name: string): number {
  return Math.max(COMPRESSION_NAMES.indexOf(name as (typeof COMPRESSION_NAMES)[number]), 0)
}

function refuse(type: number): never {
  throw new OdradekError('UNSUPPORTED', `${compressionName(type)} compression is not available here`)
}
