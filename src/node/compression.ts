/**
 * The codecs of compressed batches. gzip is Node's, zstd too where Node has it; the others are optional packages,
 * since most brokers never meet them. A batch is decoded in the middle of synchronous work, so packages are looked
 * for once, at the start, and one that is missing is refused by name when it is needed.
 */
import * as zlib from 'node:zlib'
import { type CompressionPort, compressionName } from '../log/format/compression.ts'
import { messageOf, OdradekError } from '../model/errors.ts'
import { type Codec, plain } from './codec.ts'
import { type Lz4Library, lz4Codec } from './lz4.ts'
import { type LoadPackage, loadPackage } from './packages.ts'
import { type SnappyLibrary, snappyCodec } from './snappy.ts'
import { type WasmZstd, zstdCodec, zstdOfNode, zstdOfWasm } from './zstd.ts'

/** Output that gzip makes at a time: more than most batches, so that little is put together from pieces. */
const GZIP_CHUNK_BYTES = 64 * 1024

/** One codec: its number in a batch, the package it needs, if any, and what it makes of that. */
interface CodecSource {
  readonly type: number
  readonly package: string | null
  codec(library: unknown): Codec | Promise<Codec>
}

const gzip: Codec = {
  compress: (bytes) => plain(zlib.gzipSync(bytes, { chunkSize: GZIP_CHUNK_BYTES })),
  decompress(bytes, maxBytes) {
    const options = { chunkSize: GZIP_CHUNK_BYTES, maxOutputLength: maxBytes }
    return plain(zlib.gunzipSync(bytes, options))
  },
}

const nodeZstd = zstdOfNode(zlib)

const zstd: Omit<CodecSource, 'type'> =
  nodeZstd === null
    ? {
        package: '@bokuweb/zstd-wasm',
        codec: async (library) => zstdCodec(await zstdOfWasm(library as WasmZstd)),
      }
    : { package: null, codec: () => zstdCodec(nodeZstd) }

const SOURCES: readonly CodecSource[] = [
  { type: 1, package: null, codec: () => gzip },
  { type: 2, package: 'snappy', codec: (library) => snappyCodec(library as SnappyLibrary) },
  { type: 3, package: 'lz4-napi', codec: (library) => lz4Codec(library as Lz4Library) },
  { type: 4, ...zstd },
]

let loaded: Promise<CompressionPort> | null = null

/** Every codec that is to be had here. Never fails, and looks once per process. */
export function loadCompression(): Promise<CompressionPort> {
  loaded ??= compressionWith(loadPackage)
  return loaded
}

/** The same with the packages that `load` finds. */
export async function compressionWith(load: LoadPackage): Promise<CompressionPort> {
  const codecs = await Promise.all(SOURCES.map((source) => codecOf(source, load)))
  const pick = (type: number): Codec => {
    const codec = codecs[SOURCES.findIndex((source) => source.type === type)]
    if (codec === undefined) throw unsupported(`there is no ${compressionName(type)}`)
    return codec
  }
  return {
    compress: (type, bytes) => pick(type).compress(bytes),
    decompress(type, bytes, maxBytes) {
      const codec = pick(type)
      try {
        return codec.decompress(bytes, maxBytes)
      } catch (cause) {
        if (cause instanceof OdradekError && cause.code === 'UNSUPPORTED') throw cause
        const what = `records compressed with ${compressionName(type)} do not decompress: ${messageOf(cause)}`
        throw new OdradekError('CORRUPT_LOG', what, { cause })
      }
    },
  }
}

async function codecOf(source: CodecSource, load: LoadPackage): Promise<Codec> {
  try {
    return await source.codec(source.package === null ? null : await load(source.package))
  } catch (cause) {
    const name = compressionName(source.type)
    const refuse = (): never => {
      throw unsupported(`${name} compression needs a package: npm install ${source.package}`, cause)
    }
    return { compress: refuse, decompress: refuse }
  }
}

function unsupported(what: string, cause?: unknown): OdradekError {
  return new OdradekError('UNSUPPORTED', what, { cause })
}
