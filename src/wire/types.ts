/**
 * The types that fields of messages have: Kafka's primitives, and arrays and structs made of them. A type knows how it
 * is read and written, in the compact form of flexible versions (KIP-482) and in the one before, null or not.
 *
 *                 before            flexible
 *   string        int16 length      uvarint length + 1      null: −1        null: 0
 *   bytes, array  int32 length      uvarint length + 1      null: −1        null: 0
 *   struct        fields            fields, tagged fields   null: int8 −1 in front, 1 where there is one
 */
import { utf8Length } from '../log/format/text.ts'
import { assert } from '../model/errors.ts'
import type { WireReader } from './reader.ts'
import { NO_UUID } from './uuid.ts'
import type { WireWriter } from './writer.ts'

/** How a type is in one version of a message. */
export interface Codec<T> {
  /** What is smaller is not one. Bounds how many a frame can hold. */
  readonly minBytes: number
  read(from: WireReader): T
  write(to: WireWriter, value: T): void
}

export interface Form {
  readonly version: number
  readonly flexible: boolean
  readonly nullable: boolean
}

export interface Type<T> {
  /** What stands for a value that is not given. */
  readonly empty: T
  codec(form: Form): Codec<T>
}

function fixed<T>(
  minBytes: number,
  empty: T,
  read: (from: WireReader) => T,
  write: (to: WireWriter, value: T) => void,
): Type<T> {
  const codec = { minBytes, read, write }
  return { empty, codec: () => codec }
}

export const BOOLEAN: Type<boolean> = fixed(
  1,
  false,
  (from) => from.boolean(),
  (to, value) => to.boolean(value),
)
export const INT8: Type<number> = fixed(
  1,
  0,
  (from) => from.int8(),
  (to, value) => to.int8(value),
)
export const INT16: Type<number> = fixed(
  2,
  0,
  (from) => from.int16(),
  (to, value) => to.int16(value),
)
export const UINT16: Type<number> = fixed(
  2,
  0,
  (from) => from.uint16(),
  (to, value) => to.int16(value),
)
export const INT32: Type<number> = fixed(
  4,
  0,
  (from) => from.int32(),
  (to, value) => to.int32(value),
)
export const UINT32: Type<number> = fixed(
  4,
  0,
  (from) => from.uint32(),
  (to, value) => to.int32(value),
)
export const INT64: Type<number> = fixed(
  8,
  0,
  (from) => from.int64(),
  (to, value) => to.int64(value),
)
export const FLOAT64: Type<number> = fixed(
  8,
  0,
  (from) => from.float64(),
  (to, value) => to.float64(value),
)
export const UUID: Type<string> = fixed(
  16,
  NO_UUID,
  (from) => from.uuid(),
  (to, value) => to.uuid(value),
)

/** Also where the length is a varint. */
const MAX_STRING_BYTES = 32_767
/** A byte that is no UTF-8 is read as U+FFFD, which has three. */
const MAX_BYTES_OF_A_BYTE = 3

export const STRING: Type<string> = {
  empty: '',
  codec: (form) => ({
    minBytes: form.flexible ? 1 : 2,
    read(from) {
      const sizeBytes = lengthOf(from, form, 2)
      if (sizeBytes > MAX_STRING_BYTES) throw from.malformed(`a string of ${sizeBytes} bytes`)
      if (sizeBytes < 0) return null as never
      const text = from.text(sizeBytes)
      // What was read can be written, or no answer could repeat it.
      if (sizeBytes * MAX_BYTES_OF_A_BYTE > MAX_STRING_BYTES && utf8Length(text) > MAX_STRING_BYTES) {
        throw from.malformed(`a string of ${sizeBytes} bytes that are not UTF-8`)
      }
      return text
    },
    write(to, value) {
      const sizeBytes = isNull(value, form) ? -1 : utf8Length(value)
      assert(sizeBytes <= MAX_STRING_BYTES, 'a string has at most 32,767 bytes')
      if (form.flexible) to.uvarint(sizeBytes + 1)
      else to.int16(sizeBytes)
      if (sizeBytes > 0) to.text(value, sizeBytes)
    },
  }),
}

/** Of an error in words, where it is too long for a string. */
const MAX_WORDS = 1_000

/**
 * What people read, such as why a request was refused. It may tell a name, which alone may be as long as a string can be:
 * what is too long is cut, so that no answer fails for what it says beside its code.
 */
export const WORDS: Type<string> = {
  empty: '',
  codec(form) {
    const { minBytes, read, write } = STRING.codec(form)
    return {
      minBytes,
      read,
      write(to, value) {
        const isLong = value !== null && utf8Length(value) > MAX_STRING_BYTES
        write(to, isLong ? `${value.slice(0, MAX_WORDS)}…` : value)
      },
    }
  },
}

const NO_BYTES = new Uint8Array(0)

export const BYTES: Type<Uint8Array> = {
  empty: NO_BYTES,
  codec: (form) => ({
    minBytes: form.flexible ? 1 : 4,
    read(from) {
      const sizeBytes = lengthOf(from, form, 4)
      // One for all, as with arrays: an object takes many times the byte that says that it is empty.
      if (sizeBytes === 0) return NO_BYTES
      return sizeBytes < 0 ? (null as never) : from.view(sizeBytes)
    },
    write(to, value) {
      putLength(to, isNull(value, form) ? -1 : value.length, form)
      if (value !== null) to.bytes(value)
    },
  }),
}

export class ArrayType<T> implements Type<readonly T[]> {
  readonly empty: readonly T[] = []
  readonly item: Type<T>

  constructor(item: Type<T>) {
    this.item = item
  }

  codec(form: Form): Codec<readonly T[]> {
    const { empty } = this
    const item = this.item.codec({ ...form, nullable: false })
    const { minBytes } = item
    assert(minBytes > 0, 'an item takes room, or nothing would bound how many there are')
    return {
      minBytes: form.flexible ? 1 : 4,
      read(from) {
        const count = lengthOf(from, form, 4)
        if (count < 0) return null as never
        if (count === 0) return empty
        from.items(count, minBytes)
        const items: T[] = []
        for (let i = 0; i < count; i++) items.push(item.read(from))
        return items
      },
      write(to, value) {
        putLength(to, isNull(value, form) ? -1 : value.length, form)
        if (value !== null) for (const each of value) item.write(to, each)
      },
    }
  }
}

/** −1 for null, where the form allows it. */
function lengthOf(from: WireReader, { flexible, nullable }: Form, widthBytes: 2 | 4): number {
  const length = flexible ? from.uvarint() - 1 : widthBytes === 2 ? from.int16() : from.int32()
  if (length >= 0 || (length === -1 && nullable)) return length
  throw from.malformed(length === -1 ? 'null where it must not be' : `a length of ${length}`)
}

function putLength(to: WireWriter, length: number, { flexible }: Form): void {
  if (flexible) to.uvarint(length + 1)
  else to.int32(length)
}

function isNull(value: unknown, { nullable }: Form): value is null {
  assert(value !== null || nullable, 'null is not allowed in this version')
  return value === null
}
