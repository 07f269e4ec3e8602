/**
 * Messages of Kafka's protocol by walking rows of codecs, as src/wire does, against code made for each struct and
 * version with `new Function`: what refusing code from strings costs. Tagged fields are left to the codecs in both.
 */
import type { Api, Message } from '../../dist/wire/api.js'
import type { WireReader } from '../../dist/wire/reader.js'
import type { Field, Struct, StructType } from '../../dist/wire/schema.js'
import type { ArrayType, Codec, Type } from '../../dist/wire/types.js'
import type { WireWriter } from '../../dist/wire/writer.js'
import { type Contender, race, type Session } from '../race.ts'
import { type Plan, type Samples, type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

/** The codec is no part of the package's surface: it is taken from what was built. */
async function builtWire(): Promise<Wire> {
  const built = (name: string): Promise<object> =>
    import(new URL(`../../../dist/wire/${name}.js`, import.meta.url).href)
  const parts = await Promise.all(['apis', 'reader', 'schema', 'types', 'writer'].map(built))
  return Object.assign({}, ...parts)
}

interface Wire {
  readonly APIS: readonly Api[]
  readonly WireReader: typeof WireReader
  readonly WireWriter: typeof WireWriter
  readonly StructType: typeof StructType
  readonly ArrayType: typeof ArrayType
  readonly [primitive: string]: unknown
}

interface Generated {
  read(from: WireReader): unknown
  write(to: WireWriter, value: unknown): void
}

const PRIMITIVES = ['boolean', 'int8', 'int16', 'int32', 'int64', 'uuid']

/** Expressions that read a value from `r` and write the value `x` to `w`. */
interface Code {
  readonly read: string
  write(x: string): string
}

/** Writes functions for a struct in one version. */
class Generator {
  readonly #wire: Wire
  readonly #version: number
  readonly #flexible: boolean
  readonly #functions: string[] = []
  readonly #constants: unknown[] = []

  constructor(wire: Wire, version: number, flexible: boolean) {
    this.#wire = wire
    this.#version = version
    this.#flexible = flexible
  }

  compile(type: StructType): Generated {
    const { read, write } = this.#struct(type)
    const source = `${this.#functions.join('\n')}\nreturn { read: (r) => ${read}, write: (w, v) => { ${write('v')} } }`
    return new Function('k', source)(this.#constants) as Generated
  }

  #constant(value: unknown): string {
    if (value === null || typeof value !== 'object') return JSON.stringify(value)
    this.#constants.push(value)
    return `k[${this.#constants.length - 1}]`
  }

  #struct(type: StructType): Code {
    const slots: string[] = []
    const writes: string[] = []
    const tagged: { [name: string]: Field<unknown, unknown> } = {}
    for (const [name, field] of Object.entries(type.fields as Struct)) {
      const { since, until, nullableSince, tag, fallback } = field.options
      const absent = this.#constant(fallback)
      if (tag >= 0) tagged[name] = field
      if (tag >= 0 || this.#version < since || this.#version > until) slots.push(`${name}: ${absent}`)
      else {
        const { read, write } = this.#value(field.type, this.#version >= nullableSince)
        slots.push(`${name}: ${read}`)
        writes.push(`let ${name} = v.${name}; if (${name} === undefined) ${name} = ${absent}; ${write(name)}`)
      }
    }
    if (this.#flexible) {
      const tags = this.#constant(this.#codec(new this.#wire.StructType(tagged), false))
      const isNone = 'r.bytes[r.at] === 0'
      slots.push(`...(${isNone} ? (r.at++, undefined) : ${tags}.read(r))`)
      writes.push(Object.keys(tagged).length > 0 ? `${tags}.write(w, v)` : 'w.uvarint(0)')
    }
    const id = this.#functions.length
    // A spread at the end costs where there is nothing to spread.
    const spread = this.#flexible ? slots.pop()?.replace('...', '') : undefined
    const tail = spread === undefined ? '' : `const t = ${spread}; if (t !== undefined) Object.assign(o, t);`
    this.#functions.push(
      `function r${id}(r) { const o = { ${slots.join(', ')} }; ${tail} return o }
       function w${id}(w, v) { ${writes.join('; ')} }`,
    )
    return { read: `r${id}(r)`, write: (x) => `w${id}(w, ${x})` }
  }

  #value(type: Type<unknown>, nullable: boolean): Code {
    const primitive = PRIMITIVES.find((name) => this.#wire[name.toUpperCase()] === type)
    if (primitive !== undefined) return { read: `r.${primitive}()`, write: (x) => `w.${primitive}(${x})` }
    if (type instanceof this.#wire.StructType && !nullable) return this.#struct(type)
    if (type instanceof this.#wire.ArrayType) return this.#array(type, nullable)
    const codec = this.#constant(this.#codec(type, nullable))
    return { read: `${codec}.read(r)`, write: (x) => `${codec}.write(w, ${x})` }
  }

  #array(type: ArrayType<unknown>, nullable: boolean): Code {
    const item = this.#value(type.item, false)
    const { minBytes } = this.#codec(type.item, false)
    const id = this.#functions.length
    const count = this.#flexible ? 'r.uvarint() - 1' : 'r.int32()'
    const length = this.#flexible ? 'w.uvarint(v.length + 1)' : 'w.int32(v.length)'
    const none = this.#flexible ? 'w.uvarint(0)' : 'w.int32(-1)'
    this.#functions.push(
      `function r${id}(r) {
         const n = ${count}
         if (n < 0) { if (n === -1 && ${nullable}) return null; throw r.malformed('a length') }
         if (n * ${minBytes} > r.left) throw r.malformed('no room')
         const items = []
         for (let i = 0; i < n; i++) items.push(${item.read})
         return items
       }
       function w${id}(w, v) {
         if (v === null) { if (!${nullable}) throw new Error('null'); ${none}; return }
         ${length}
         for (const each of v) { ${item.write('each')} }
       }`,
    )
    return { read: `r${id}(r)`, write: (x) => `w${id}(w, ${x})` }
  }

  #codec(type: Type<unknown>, nullable: boolean): Codec<unknown> {
    return type.codec({ version: this.#version, flexible: this.#flexible, nullable })
  }
}

interface Case {
  readonly name: string
  readonly key: number
  readonly version: number
  readonly kind: 'request' | 'response'
  readonly value: { readonly [name: string]: unknown }
}

function many<T>(count: number, each: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => each(i))
}

const UUID = 'U4RUEnsJZJNS4sOsFtJvKQ'
const records = new Uint8Array(16_384)

const CASES: readonly Case[] = [
  {
    name: 'Fetch 12 request, 30 partitions',
    key: 1,
    version: 12,
    kind: 'request',
    value: {
      maxWaitMs: 500,
      minBytes: 1,
      topics: many(3, (t) => ({
        topic: `orders-${t}`,
        partitions: many(10, (i) => ({ partition: i, fetchOffset: 123_456, partitionMaxBytes: 1_048_576 })),
      })),
    },
  },
  {
    name: 'Fetch 12 response, 30 partitions',
    key: 1,
    version: 12,
    kind: 'response',
    value: {
      throttleTimeMs: 0,
      responses: many(3, (t) => ({
        topic: `orders-${t}`,
        partitions: many(10, (i) => ({ partitionIndex: i, highWatermark: 12_345, records })),
      })),
    },
  },
  {
    name: 'Produce 9 request, 1 partition',
    key: 0,
    version: 9,
    kind: 'request',
    value: {
      acks: -1,
      timeoutMs: 30_000,
      topicData: [{ name: 'orders', partitionData: [{ index: 0, records }] }],
    },
  },
  {
    name: 'Metadata 12 response, 200 partitions',
    key: 3,
    version: 12,
    kind: 'response',
    value: {
      brokers: [{ nodeId: 0, host: 'localhost', port: 9_092 }],
      clusterId: UUID,
      topics: many(20, (t) => ({
        name: `a-topic-with-a-name-${t}`,
        topicId: UUID,
        partitions: many(10, (i) => ({ partitionIndex: i, leaderId: 0, replicaNodes: [0], isrNodes: [0] })),
      })),
    },
  },
  {
    name: 'Heartbeat 4 request',
    key: 12,
    version: 4,
    kind: 'request',
    value: { groupId: 'orders', generationId: 5, memberId: 'consumer-1-8c0bd5a0-5b0e-4f0b-9b0b' },
  },
]

/** What was made last, so that making it cannot be left out. */
let kept: unknown

function contender(name: string, once: () => boolean): Contender {
  return {
    name,
    open(): Session {
      const tally = new Tally()
      return {
        tallies: [tally],
        run(count) {
          for (let i = 0; i < count; i++) tally.add(once() ? 1 : 0)
        },
      }
    },
  }
}

function contendersFor(wire: Wire, { name, key, version, kind, value }: Case): Contender[] {
  const api = wire.APIS.find((each) => each.key === key) as Api
  const message: Message<Struct> = kind === 'request' ? api.request : api.response
  const generated = new Generator(wire, version, version >= api.flexibleSince).compile(message.type)
  const walked: Generated = {
    read: (from) => message.read(version, from),
    write: (to, each) => message.write(version, to, each as never),
  }
  const to = new wire.WireWriter()
  walked.write(to, value)
  const pieces = to.pieces()
  const frame = new Uint8Array(Buffer.concat(pieces))
  return Object.entries({ closures: walked, generated }).flatMap(([form, codec]) => [
    contender(`${form}, read: ${name}`, () => {
      const from = new wire.WireReader(frame)
      kept = codec.read(from)
      return from.at === frame.length && kept !== undefined
    }),
    contender(`${form}, write: ${name}`, () => {
      const writer = new wire.WireWriter()
      codec.write(writer, value)
      kept = writer.pieces()
      return writer.sizeBytes === frame.length
    }),
  ])
}

async function sample(plan: Plan): Promise<Samples> {
  const wire = await builtWire()
  const contenders = CASES.flatMap((each) => contendersFor(wire, each))
  return race({ expectation: ordered(() => 1), contenders })(plan)
}

export const wireCodecs: Scenario = {
  name: 'wire-codecs',
  title: "Messages of Kafka's protocol: rows of codecs against generated code",
  moved: 'messages',
  rows: CASES.flatMap(({ name }) =>
    ['read', 'write'].map((way) => speed(`generated, ${way}: ${name}`, `closures, ${way}: ${name}`)),
  ),
  sample,
}
