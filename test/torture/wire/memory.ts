/** How much memory a frame can take at most, measured: frames full of the smallest items that there are. */
import type { Api } from '../../../src/wire/api.ts'
import { APIS } from '../../../src/wire/apis.ts'
import { WireReader } from '../../../src/wire/reader.ts'
import { type Struct, StructType } from '../../../src/wire/schema.ts'
import { ArrayType, BYTES, STRING, type Type, WORDS } from '../../../src/wire/types.ts'
import { WireWriter } from '../../../src/wire/writer.ts'
import { collected } from '../../support/garbage.ts'
import { type Kind, messageOf } from '../../wire/kafka-messages.ts'

/** What is read of a frame takes at most so many times as many bytes. */
export const MAX_MULTIPLE = 64

export interface Multiple {
  readonly name: string
  readonly multiple: number
}

type Value = { readonly [name: string]: unknown }

/** Each array of a struct, full, with all that is around it: its path, and a value to be written. */
function* full(
  fields: Struct,
  version: number,
  items: number,
): Generator<readonly [path: string, value: Value]> {
  for (const [name, { type, options }] of Object.entries(fields)) {
    if (version < options.since || version > options.until) continue
    if (type instanceof ArrayType) {
      for (const [what, item] of smallest(type.item, version)) {
        yield [`${name}${what}`, { [name]: new Array(items).fill(item) }]
      }
      if (!(type.item instanceof StructType)) continue
      for (const [path, value] of full(type.item.fields, version, items))
        yield [`${name}.${path}`, { [name]: [value] }]
    } else if (type instanceof StructType) {
      for (const [path, value] of full(type.fields, version, items))
        yield [`${name}.${path}`, { [name]: value }]
    }
  }
}

/** The smallest item, and those with one thing in it. */
function* smallest(type: Type<unknown>, version: number): Generator<readonly [what: string, item: unknown]> {
  if (!(type instanceof StructType)) {
    yield ['', type.empty]
    return
  }
  yield ['', {}]
  for (const [name, { type: inner, options }] of Object.entries(type.fields)) {
    if (version < options.since || version > options.until) continue
    if (inner === BYTES) yield [` with ${name}`, { [name]: new Uint8Array(1) }]
    if (inner === STRING || inner === WORDS) yield [` with ${name}`, { [name]: 'ab' }]
    if (!(inner instanceof ArrayType)) continue
    yield [` with ${name}`, { [name]: [inner.item instanceof StructType ? {} : inner.item.empty] }]
  }
}

function measure(api: Api, kind: Kind, value: Value): number {
  const message = messageOf(api, kind)
  const to = new WireWriter()
  message.write(api.max, to, value as never)
  const frame = new Uint8Array(Buffer.concat(to.pieces()))
  message.read(api.max, new WireReader(frame))
  const before = collected()
  const read = message.read(api.max, new WireReader(frame))
  const after = collected()
  // It must live until here.
  if (read === null) throw new Error('a message is a struct')
  return (after - before) / frame.length
}

export interface MemoryOptions {
  readonly kinds?: readonly Kind[]
  readonly items?: number
  /** APIs by name. Default: all. */
  readonly only?: readonly string[]
}

/** Of every array of the messages in their newest version, where items are smallest; largest first. */
export function multiples({
  kinds = ['request', 'response'],
  items = 10_000,
  only,
}: MemoryOptions = {}): Multiple[] {
  const found: Multiple[] = []
  for (const api of APIS.filter(({ name }) => only?.includes(name) ?? true)) {
    for (const kind of kinds) {
      for (const [path, value] of full(messageOf(api, kind).type.fields, api.max, items)) {
        found.push({ name: `${api.name} ${api.max} ${kind}, ${path}`, multiple: measure(api, kind, value) })
      }
    }
  }
  return found.sort((a, b) => b.multiple - a.multiple)
}
