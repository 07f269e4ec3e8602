/**
 * The codecs of compressed batches. gzip is Node's, zstd too where Node has it; the others are optional packages,
 * since most brokers never meet them. A batch is decoded in the middle of synchronous work, and a package is loaded in
 * its own time, up to 30 ms each: so whoever has a batch waits first until its codec is `ready`. One that is
 * missing is refused by name when it is needed.
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

/** One codec: its number in a batch, and what it is made of. */
type CodecSource = PackagedCodec | { readonly type: number; readonly package: null; codec(): Codec }

interface PackagedCodec {
  readonly type: number
  readonly package: string
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

const zstd: CodecSource =
  nodeZstd === null
    ? {
        type: 4,
        package: '@bokuweb/zstd-wasm',
        codec: async (library) => zstdCodec(await zstdOfWasm(library as WasmZstd)),
      }
    : { type: 4, package: null, codec: () => zstdCodec(nodeZstd) }

const SOURCES: readonly CodecSource[] = [
  { type: 1, package: null, codec: () => gzip },
  { type: 2, package: 'snappy', codec: (library) => snappyCodec(library as SnappyLibrary) },
  { type: 3, package: 'lz4-napi', codec: (library) => lz4Codec(library as Lz4Library) },
  zstd,
]

let ours: Codecs | null = null

/** Every codec that is to be had here, each looked for once per process: when somebody waits for it to be ready. */
export function lazyCompression(): CompressionPort {
  ours ??= new Codecs(loadPackage)
  return ours
}

/** The same with the packages that `load` finds, all of them looked for. Never fails. */
export async function compressionWith(load: LoadPackage = loadPackage): Promise<CompressionPort> {
  const codecs = new Codecs(load)
  await Promise.all(SOURCES.map(({ type }) => codecs.ready(type)))
  return codecs
}

class Codecs implements CompressionPort {
  readonly #load: LoadPackage
  readonly #codecs = new Map<number, Codec>()
  readonly #looking = new Map<number, Promise<void>>()

  constructor(load: LoadPackage) {
    this.#load = load
    for (const source of SOURCES) {
      if (source.package === null) this.#codecs.set(source.type, source.codec())
    }
  }

  ready(type: number): Promise<void> | undefined {
    const source = SOURCES.find((each) => each.type === type)
    if (source === undefined || source.package === null || this.#codecs.has(type)) return undefined
    const looking = this.#looking.get(type) ?? this.#look(source)
    this.#looking.set(type, looking)
    return looking
  }

  async #look(source: PackagedCodec): Promise<void> {
    this.#codecs.set(source.type, await codecOf(source, this.#load))
  }

  compress(type: number, bytes: Uint8Array): Uint8Array {
    return this.#pick(type).compress(bytes)
  }

  decompress(type: number, bytes: Uint8Array, maxBytes: number): Uint8Array {
    const codec = this.#pick(type)
    try {
      return codec.decompress(bytes, maxBytes)
    } catch (cause) {
      if (cause instanceof OdradekError && cause.code === 'UNSUPPORTED') throw cause
      const what = `records compressed with ${compressionName(type)} do not decompress: ${messageOf(cause)}`
      throw new OdradekError('CORRUPT_LOG', what, { cause })
    }
  }

  #pick(type: number): Codec {
    const codec = this.#codecs.get(type)
    if (codec !== undefined) return codec
    const name = compressionName(type)
    const known = SOURCES.some((source) => source.type === type)
    throw unsupported(known ? `${name} compression is not loaded yet` : `there is no ${name}`)
  }
}

async function codecOf(source: PackagedCodec, load: LoadPackage): Promise<Codec> {
  try {
    return await source.codec(await load(source.package))
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
