/** Values of messages for property tests, derived from the schema: whatever a version can hold. */
import fc from 'fast-check'
import { type Struct, StructType } from '../../src/wire/schema.ts'
import {
  ArrayType,
  BOOLEAN,
  BYTES,
  FLOAT64,
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
} from '../../src/wire/types.ts'

const uuid = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((bytes) => Buffer.from(bytes).toString('base64url'))

/** Now and then more than a writer copies. */
const bytes = fc.oneof(
  { weight: 9, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 2_048, maxLength: 3_000 }) },
)

const PRIMITIVES = new Map<Type<unknown>, fc.Arbitrary<unknown>>([
  [BOOLEAN, fc.boolean()],
  [INT8, fc.integer({ min: -128, max: 127 })],
  [INT16, fc.integer({ min: -(2 ** 15), max: 2 ** 15 - 1 })],
  [UINT16, fc.integer({ min: 0, max: 2 ** 16 - 1 })],
  [INT32, fc.integer()],
  [UINT32, fc.integer({ min: 0, max: 2 ** 32 - 1 })],
  [INT64, fc.maxSafeInteger()],
  [FLOAT64, fc.double()],
  [UUID, uuid],
  [STRING, fc.string({ unit: 'binary', maxLength: 40 })],
  [WORDS, fc.string({ unit: 'binary', maxLength: 40 })],
  [BYTES, bytes],
])

function arbitraryOf(type: Type<unknown>, version: number): fc.Arbitrary<unknown> {
  if (type instanceof StructType) return structIn(type.fields, version)
  if (type instanceof ArrayType) return fc.array(arbitraryOf(type.item, version), { maxLength: 3 })
  const found = PRIMITIVES.get(type)
  if (found === undefined) throw new Error('a type without an arbitrary')
  return found
}

/** A whole value: what the version does not have is its fallback, as reading answers it. */
export function structIn(fields: Struct, version: number): fc.Arbitrary<unknown> {
  const members: { [name: string]: fc.Arbitrary<unknown> } = {}
  for (const [name, { type, options }] of Object.entries(fields)) {
    const { since, until, nullableSince, fallback } = options
    if (version < since || version > until) members[name] = fc.constant(fallback)
    else if (version < nullableSince) members[name] = arbitraryOf(type, version)
    else members[name] = fc.option(arbitraryOf(type, version), { freq: 4 })
  }
  return fc.record(members)
}
