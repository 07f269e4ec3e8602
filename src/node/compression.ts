/**
 * The codecs of compressed batches. gzip is Node's, zstd too where Node has it; the others are optional packages,
 * since most brokers never meet them. A batch is decoded in the middle of synchronous work, and a package is loaded in
 * its own time, up to 30 ms each: so whoever has a batch waits first until its codec is `ready`. One that is
 * missing is refused by name when it is needed. Node's own are there at once, loaded for the first batch all the same.
 */
import { type CompressionPort, compressionName } from '../log/format/compression.ts'
import { messageOf, OdradekError } from '../model/errors.ts'
import { type Codec, plain } from './codec.ts'
import { type Lz4Library, lz4Codec } from './lz4.ts'
import { type LoadPackage, loadPackage } from './packages.ts'
import { type SnappyLibrary, snappyCodec } from './snappy.ts'
import { type WasmZstd, zstdCodec, zstdOfNode, zstdOfWasm } from './zstd.ts'

/** Those that Kafka has. */
const TYPES = [1, 2, 3, 4]

type Zlib = typeof import('node:zlib')

/** Output that gzip makes at a time: more than most batches, so that little is put together from pieces. */
const GZIP_CHUNK_BYTES = 64 * 1024

/** One codec: its number in a batch, and what it is made of. */
type CodecSource = PackagedCodec | { readonly type: number; readonly package: null; codec(): Codec }

interface PackagedCodec {
  readonly type: number
  readonly package: string
  codec(library: unknown): Codec | Promise<Codec>
}

function gzipOf(zlib: Zlib): Codec {
  return {
    compress: (bytes) => plain(zlib.gzipSync(bytes, { chunkSize: GZIP_CHUNK_BYTES })),
    decompress(bytes, maxBytes) {
      const options = { chunkSize: GZIP_CHUNK_BYTES, maxOutputLength: maxBytes }
      return plain(zlib.gunzipSync(bytes, options))
    },
  }
}

function zstdOf(zlib: Zlib): CodecSource {
  const ofNode = zstdOfNode(zlib)
  if (ofNode !== null) return { type: 4, package: null, codec: () => zstdCodec(ofNode) }
  return {
    type: 4,
    package: '@bokuweb/zstd-wasm',
    codec: async (library) => zstdCodec(await zstdOfWasm(library as WasmZstd)),
  }
}

function allSources(): readonly CodecSource[] {
  const zlib = process.getBuiltinModule('node:zlib')
  return [
    { type: 1, package: null, codec: () => gzipOf(zlib) },
    { type: 2, package: 'snappy', codec: (library) => snappyCodec(library as SnappyLibrary) },
    { type: 3, package: 'lz4-napi', codec: (library) => lz4Codec(library as Lz4Library) },
    zstdOf(zlib),
  ]
}

let sources: readonly CodecSource[] | undefined

function sourceOf(type: number): CodecSource | undefined {
  if (type === 0) return undefined
  sources ??= allSources()
  return sources.find((each) => each.type === type)
}

let ours: Codecs | null = null

/** Every codec that is to be had here, each looked for once per process: when somebody waits for it to be ready. */
export function lazyCompression(): CompressionPort {
  ours ??= new Codecs(loadPackage)
  return ours
}

/** The same with the packages that `load` finds, all of them looked for. Never fails. */
export async function compressionWith(load: LoadPackage = loadPackage): Promise<CompressionPort> {
  const codecs = new Codecs(load)
  await Promise.all(TYPES.map((type) => codecs.ready(type)))
  return codecs
}

class Codecs implements CompressionPort {
  readonly #load: LoadPackage
  readonly #codecs = new Map<number, Codec>()
  readonly #looking = new Map<number, Promise<void>>()

  constructor(load: LoadPackage) {
    this.#load = load
  }

  ready(type: number): Promise<void> | undefined {
    if (this.#codecs.has(type)) return undefined
    const source = sourceOf(type)
    if (source === undefined || source.package === null) return undefined
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
    const source = sourceOf(type)
    if (source?.package === null) {
      const made = source.codec()
      this.#codecs.set(type, made)
      return made
    }
    const name = compressionName(type)
    throw unsupported(source === undefined ? `there is no ${name}` : `${name} compression is not loaded yet`)
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
