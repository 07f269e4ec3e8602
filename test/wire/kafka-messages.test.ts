/** Every API in every version, both ways, against the bytes of Kafka's own client and what Kafka says they hold. */
import { describe, expect, it } from 'vitest'
import {
  type Api,
  readRequest,
  readRequestHeader,
  readResponse,
  writeRequest,
  writeResponse,
} from '../../src/wire/api.ts'
import { APIS } from '../../src/wire/apis.ts'
import { WireReader } from '../../src/wire/reader.ts'
import { type Struct, StructType } from '../../src/wire/schema.ts'
import { ArrayType, BYTES, type Type } from '../../src/wire/types.ts'
import {
  type Defaults,
  defaultsFor,
  type Json,
  messageOf,
  versionsOf,
  WRITTEN,
  type Written,
  writtenFor,
} from './kafka-messages.ts'

const KINDS = ['request', 'response'] as const

/** What reading should answer, of what Kafka says: what it does not name has its fallback. */
function expected(type: Type<unknown>, json: Json): unknown {
  if (json === null) return null
  if (type instanceof ArrayType) return (json as readonly Json[]).map((item) => expected(type.item, item))
  if (type instanceof StructType)
    return expectedStruct(type.fields, json as { readonly [name: string]: Json })
  return type === BYTES ? new Uint8Array(Buffer.from(json as string, 'base64')) : json
}

function expectedStruct(fields: Struct, json: { readonly [name: string]: Json }): unknown {
  const values: { [name: string]: unknown } = {}
  for (const [name, { type, options }] of Object.entries(fields)) {
    const told = json[name]
    values[name] = told === undefined ? options.fallback : expected(type, told)
  }
  for (const name of Object.keys(json)) if (!(name in fields)) values[name] = 'is not in the schema'
  return values
}

function read(api: Api, { kind, version, frame, correlationId, clientId }: Written): unknown {
  if (kind === 'response') {
    const response = readResponse(api, version, frame.subarray(4))
    expect(response.correlationId).toBe(correlationId)
    return response.body
  }
  const from = new WireReader(frame, 4)
  expect(readRequestHeader(from)).toEqual({
    apiKey: api.key,
    apiVersion: version,
    correlationId,
    clientId,
  })
  const body = readRequest(api, version, from)
  expect(from.left).toBe(0)
  return body
}

function write(api: Api, header: Written, body: never): Uint8Array {
  const { kind, version, correlationId } = header
  const pieces =
    kind === 'request'
      ? writeRequest(api, version, header, body)
      : writeResponse(api, version, correlationId, body)
  return new Uint8Array(Buffer.concat(pieces))
}

describe.each(APIS.map((api) => [`${api.key} ${api.name}`, api] as const))('%s', (_, api) => {
  describe.each(KINDS)('%s', (kind) => {
    const written = writtenFor(api, kind)

    it('is there in every version', () => {
      const versions = (variant: string): number[] =>
        written.filter((each) => each.variant === variant).map(({ version }) => version)
      expect(versions('defaults')).toEqual(versionsOf(api))
      expect(versions('full')).toEqual(versionsOf(api))
      expect(versions('tagged')).toEqual(versionsOf(api).filter((version) => version >= api.flexibleSince))
    })

    it.each(written)('$version, $variant: reads what Kafka wrote, and writes it as Kafka does', (each) => {
      const body = read(api, each)
      expect(body).toEqual(expected(messageOf(api, kind).type, each.value))
      // Tagged fields that are not known are not written again.
      if (each.variant !== 'tagged') expect(write(api, each, body as never)).toEqual(each.frame)
    })

    it('takes for a field that is not there what Kafka takes, or null where it may be null', () => {
      expectFallbacks(messageOf(api, kind).type, defaultsFor(api, kind))
    })
  })
})

/** Fields of Kafka's that none of our versions has are of no interest. */
function expectFallbacks({ fields }: StructType, defaults: Defaults): void {
  for (const [name, { type, options }] of Object.entries(fields)) {
    const { value, fields: inside } = defaults[name] ?? { value: 'Kafka has no such field' }
    const isNullable = options.nullableSince < Number.POSITIVE_INFINITY
    const ours = options.fallback instanceof Uint8Array ? hexOf(options.fallback) : options.fallback
    expect(ours, name).toEqual(isNullable && ours === null ? null : value)
    const inner = type instanceof ArrayType ? type.item : type
    if (inner instanceof StructType) expectFallbacks(inner, inside as Defaults)
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

it('knows every message that is in the fixtures', () => {
  const known = (key: number, version: number): boolean =>
    APIS.some((api) => api.key === key && api.isSpoken(version))
  expect(WRITTEN.filter(({ key, version }) => !known(key, version))).toEqual([])
})
