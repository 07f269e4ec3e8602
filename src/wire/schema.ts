/**
 * The language in which messages are written down: a struct is an object of fields, a field is a type and the versions
 * in which it is there. Both directions, and the TypeScript types, come of the one description.
 *
 *   { groupId: string, groupInstanceId: string.nullable().since(3), topics: array({ name: string }) }
 *
 * For each version, a struct becomes a row of readers and a row of writers once, when it is first asked for. What a
 * version does not have is read as its fallback, and not written, whatever it is. Tagged fields (KIP-482) are written
 * where they are not their fallback; tags that nobody here knows are skipped.
 */
import type { WireReader } from './reader.ts'
import {
  ArrayType,
  BOOLEAN,
  BYTES,
  type Codec,
  FLOAT64,
  type Form,
  INT8,
  INT16,
  INT32,
  INT64,
  STRING,
  type Type,
  UINT16,
  UINT32,
  UUID,
  WORDS,
} from './types.ts'
import { WireWriter } from './writer.ts'

const NEVER = Number.POSITIVE_INFINITY

interface FieldOptions<T> {
  readonly since: number
  /** Last version that has it. */
  readonly until: number
  /** First version in which it may be null. */
  readonly nullableSince: number
  /** −1: not tagged. */
  readonly tag: number
  readonly fallback: T
}

/**
 * `T`: what is read. `Input`: what may be written. `Optional`: whether it may be left out when written, since it has
 * a fallback.
 */
export class Field<T, Input = T, Optional extends boolean = boolean> {
  readonly type: Type<unknown>
  readonly options: FieldOptions<T>
  /** Never set: tells the compiler apart what may be left out. */
  declare readonly optional: Optional
  declare readonly input: Input

  constructor(type: Type<unknown>, options: FieldOptions<T>) {
    this.type = type
    this.options = options
  }

  /** In this version and later ones. */
  since(version: number): Field<T, Input, true> {
    return this.#with({ since: version })
  }

  /** In this version and earlier ones. */
  until(version: number): Field<T, Input, true> {
    return this.#with({ until: version })
  }

  /** May be null, from `since` on. Null is the fallback then; in earlier versions, what is empty is written for it. */
  nullable(since: number = 0): Field<T | null, Input | null, true> {
    const options = { ...this.options, nullableSince: since, fallback: null }
    return new Field<T | null, Input | null, true>(this.type, options)
  }

  /** Stands among the tagged fields, from version `since` on. */
  tagged(tag: number, since: number): Field<T, Input, true> {
    return this.#with({ tag, since })
  }

  /** What is read where a version does not have it, and written where nothing is given. */
  or(fallback: T): Field<T, Input, true> {
    return this.#with({ fallback })
  }

  #with(changes: Partial<FieldOptions<T>>): Field<T, Input, true> {
    return new Field<T, Input, true>(this.type, { ...this.options, ...changes })
  }
}

export type Struct = { readonly [name: string]: Field<unknown, unknown> }

/** What reading a struct answers. */
export type ValueOf<S extends Struct> = {
  readonly [Name in keyof S]: S[Name] extends Field<infer T, unknown> ? T : never
}

type OptionalNames<S extends Struct> = {
  [Name in keyof S]: S[Name]['optional'] extends true ? Name : never
}[keyof S]

/** What writing a struct takes. */
export type InputOf<S extends Struct> = {
  readonly [Name in Exclude<keyof S, OptionalNames<S>>]: S[Name]['input']
} & { readonly [Name in OptionalNames<S>]?: S[Name]['input'] | undefined }

function field<T>(type: Type<T>): Field<T, T, false> {
  const options = { since: 0, until: NEVER, nullableSince: NEVER, tag: -1, fallback: type.empty }
  return new Field<T, T, false>(type, options)
}

export const boolean: Field<boolean, boolean, false> = field(BOOLEAN)
export const int8: Field<number, number, false> = field(INT8)
export const int16: Field<number, number, false> = field(INT16)
export const uint16: Field<number, number, false> = field(UINT16)
export const int32: Field<number, number, false> = field(INT32)
export const uint32: Field<number, number, false> = field(UINT32)
export const int64: Field<number, number, false> = field(INT64)
export const float64: Field<number, number, false> = field(FLOAT64)
export const uuid: Field<string, string, false> = field(UUID)
export const string: Field<string, string, false> = field(STRING)
/** A string for people, cut where it is too long. */
export const words: Field<string, string, false> = field(WORDS)
export const bytes: Field<Uint8Array, Uint8Array, false> = field(BYTES)

/** Of structs, or of a primitive. */
export function array<S extends Struct>(fields: S): Field<readonly ValueOf<S>[], readonly InputOf<S>[], false>
export function array<T>(item: Field<T, T, false>): Field<readonly T[], readonly T[], false>
export function array(of: Struct | Field<unknown, unknown, false>): unknown {
  return field(new ArrayType(of instanceof Field ? of.type : new StructType(of)))
}

export function struct<S extends Struct>(fields: S): Field<ValueOf<S>, InputOf<S>, false> {
  return field(new StructType(fields)) as unknown as Field<ValueOf<S>, InputOf<S>, false>
}

type Values = { [name: string]: unknown }

/** A field that a version has. */
interface Member {
  readonly name: string
  readonly tag: number
  readonly fallback: unknown
  readonly codec: Codec<unknown>
}

/** Where a field stands in what is read: every field has its slot, so that a struct always has the same shape. */
interface Slot {
  readonly name: string
  readonly fallback: unknown
  /** None where the version does not have it, or has it among the tagged fields. */
  readonly codec: Codec<unknown> | undefined
}

/** A struct, as the type of a field. */
export class StructType implements Type<unknown> {
  readonly fields: Struct

  constructor(fields: Struct) {
    this.fields = fields
  }

  /** Made when it is asked for: of most structs nobody ever does. */
  get empty(): unknown {
    const entries = Object.entries(this.fields).map(([name, { options }]) => [name, options.fallback])
    return Object.fromEntries(entries)
  }

  codec(form: Form): Codec<unknown> {
    const members = this.#membersIn(form)
    const plain = new PlainStruct(members, this.#slotsOf(members), form.flexible)
    return form.nullable ? nullable(plain) : plain
  }

  #membersIn({ version, flexible }: Form): Member[] {
    const members: Member[] = []
    for (const [name, { type, options }] of Object.entries(this.fields)) {
      const { since, until, nullableSince, tag, fallback } = options
      if (version < since || version > until) continue
      const nullable = version >= nullableSince
      const codec = type.codec({ version, flexible, nullable })
      members.push({ name, tag, fallback: nullable ? fallback : (fallback ?? type.empty), codec })
    }
    return members
  }

  #slotsOf(members: readonly Member[]): Slot[] {
    return Object.entries(this.fields).map(([name, { options }]) => {
      const member = members.find((each) => each.name === name && each.tag < 0)
      return { name, fallback: options.fallback, codec: member?.codec }
    })
  }
}

class PlainStruct implements Codec<unknown> {
  readonly minBytes: number
  readonly #slots: readonly Slot[]
  readonly #members: readonly Member[]
  readonly #tagged: readonly Member[]
  readonly #flexible: boolean

  constructor(members: readonly Member[], slots: readonly Slot[], flexible: boolean) {
    this.#slots = slots
    this.#members = members.filter(({ tag }) => tag < 0)
    this.#tagged = members.filter(({ tag }) => tag >= 0).sort((a, b) => a.tag - b.tag)
    this.#flexible = flexible
    this.minBytes = this.#members.reduce((sum, { codec }) => sum + codec.minBytes, flexible ? 1 : 0)
  }

  read(from: WireReader): unknown {
    const values: Values = {}
    for (const { name, fallback, codec } of this.#slots) {
      values[name] = codec === undefined ? fallback : codec.read(from)
    }
    if (this.#flexible) this.#readTagged(from, values)
    return values
  }

  #readTagged(from: WireReader, values: Values): void {
    const count = from.uvarint()
    // A tag and a size are a byte each at least.
    if (count * 2 > from.left) throw from.malformed(`there is no room for ${count} tagged fields`)
    let last = -1
    for (let i = 0; i < count; i++) {
      const tag = from.uvarint()
      if (tag <= last) throw from.malformed(`tag ${tag} follows tag ${last}`)
      last = tag
      const sizeBytes = from.uvarint()
      if (sizeBytes > from.left) throw from.malformed(`there is no room for ${sizeBytes} bytes of tag ${tag}`)
      const member = this.#tagged.find((each) => each.tag === tag)
      const until = from.at + sizeBytes
      if (member === undefined) from.view(sizeBytes)
      else values[member.name] = member.codec.read(from)
      if (from.at !== until) throw from.malformed(`tag ${tag} has another length than it says`)
    }
  }

  write(to: WireWriter, value: unknown): void {
    const values = value as Values
    for (const { name, fallback, codec } of this.#members) {
      const given = values[name]
      codec.write(to, given === undefined ? fallback : given)
    }
    if (this.#flexible) this.#writeTagged(to, values)
  }

  #writeTagged(to: WireWriter, values: Values): void {
    let count = 0
    for (const { name, fallback } of this.#tagged) if (!isSame(values[name], fallback)) count++
    to.uvarint(count)
    if (count === 0) return
    for (const { name, tag, fallback, codec } of this.#tagged) {
      if (isSame(values[name], fallback)) continue
      const inner = new WireWriter()
      codec.write(inner, values[name])
      to.uvarint(tag)
      to.uvarint(inner.sizeBytes)
      to.append(inner)
    }
  }
}

/** Whether reading would answer the same if it were not written. */
function isSame(value: unknown, fallback: unknown): boolean {
  if (value === undefined || value === fallback) return true
  if (typeof value !== 'object' || value === null || fallback === null) return false
  // A fallback with a length is empty: arrays, bytes.
  if ('length' in value) return value.length === 0
  return Object.entries(fallback as Values).every(([name, each]) => isSame((value as Values)[name], each))
}

/** KIP-893: a struct that may be missing says so with a byte in front. */
function nullable(plain: Codec<unknown>): Codec<unknown> {
  return {
    minBytes: 1,
    read: (from) => (from.int8() < 0 ? null : plain.read(from)),
    write(to, value) {
      to.int8(value === null ? -1 : 1)
      if (value !== null) plain.write(to, value)
    },
  }
}
