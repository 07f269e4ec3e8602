/**
 * An API of the protocol: its key, its versions, and both of its messages. A message is compiled for a version when it
 * is first used in it.
 *
 *   request    length │ header: key, version, correlation, client id, tags │ body
 *   response   length │ header: correlation, tags                          │ body
 *
 * The header has tags where the body is flexible. The response to ApiVersions never has: a client reads it before it
 * knows what the broker can do (KIP-511).
 */
import { assert } from '../model/errors.ts'
import { WireReader } from './reader.ts'
import { type InputOf, type Struct, StructType, string, type ValueOf } from './schema.ts'
import type { Codec } from './types.ts'
import { WireWriter } from './writer.ts'

const API_VERSIONS = 18

export interface ApiDefinition<Req extends Struct, Res extends Struct> {
  readonly key: number
  readonly name: string
  /** First and last version that is spoken here. */
  readonly versions: readonly [min: number, max: number]
  /** First version with compact types and tagged fields; Infinity for none. */
  readonly flexibleSince: number
  readonly request: Req
  readonly response: Res
}

export class Message<S extends Struct> {
  readonly type: StructType
  readonly #flexibleSince: number
  readonly #codecs = new Map<number, Codec<unknown>>()

  constructor(fields: S, flexibleSince: number) {
    this.type = new StructType(fields)
    this.#flexibleSince = flexibleSince
  }

  /** @throws OdradekError PROTOCOL_ERROR */
  read(version: number, from: WireReader): ValueOf<S> {
    return this.#codec(version).read(from) as ValueOf<S>
  }

  write(version: number, to: WireWriter, value: InputOf<S>): void {
    this.#codec(version).write(to, value)
  }

  #codec(version: number): Codec<unknown> {
    let codec = this.#codecs.get(version)
    if (codec === undefined) {
      codec = this.type.codec({ version, flexible: version >= this.#flexibleSince, nullable: false })
      this.#codecs.set(version, codec)
    }
    return codec
  }
}

export class Api<Req extends Struct = Struct, Res extends Struct = Struct> {
  readonly key: number
  readonly name: string
  readonly min: number
  readonly max: number
  readonly flexibleSince: number
  readonly request: Message<Req>
  readonly response: Message<Res>

  constructor({ key, name, versions, flexibleSince, request, response }: ApiDefinition<Req, Res>) {
    this.key = key
    this.name = name
    this.min = versions[0]
    this.max = versions[1]
    this.flexibleSince = flexibleSince
    this.request = new Message(request, flexibleSince)
    this.response = new Message(response, flexibleSince)
  }

  isSpoken(version: number): boolean {
    return version >= this.min && version <= this.max
  }
}

export type RequestOf<A> = A extends Api<infer Req, Struct> ? ValueOf<Req> : never
export type RequestInputOf<A> = A extends Api<infer Req, Struct> ? InputOf<Req> : never
export type ResponseOf<A> = A extends Api<Struct, infer Res> ? ValueOf<Res> : never
export type ResponseInputOf<A> = A extends Api<Struct, infer Res> ? InputOf<Res> : never

export function api<Req extends Struct, Res extends Struct>(
  definition: ApiDefinition<Req, Res>,
): Api<Req, Res> {
  return new Api(definition)
}

export interface RequestHeader {
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string | null
}

const CLIENT_ID = string.nullable().type.codec({ version: 0, flexible: false, nullable: true })
const TAGS = new StructType({}).codec({ version: 0, flexible: true, nullable: false })

/**
 * What every request begins with, up to where a flexible one has its tags: which those are is not known before. Takes
 * a frame without its length. @throws OdradekError PROTOCOL_ERROR
 */
export function readRequestHeader(from: WireReader): RequestHeader {
  const apiKey = from.int16()
  const apiVersion = from.int16()
  const correlationId = from.int32()
  return { apiKey, apiVersion, correlationId, clientId: CLIENT_ID.read(from) as string | null }
}

/** The rest of a request, once its API is known. What follows it is not looked at. @throws OdradekError PROTOCOL_ERROR */
export function readRequest<Req extends Struct>(
  { request, flexibleSince }: Api<Req, Struct>,
  version: number,
  from: WireReader,
): ValueOf<Req> {
  if (version >= flexibleSince) TAGS.read(from)
  return request.read(version, from)
}

/** A whole frame. */
export function writeRequest<Req extends Struct>(
  { key, request, flexibleSince }: Api<Req, Struct>,
  version: number,
  { correlationId, clientId }: Pick<RequestHeader, 'correlationId' | 'clientId'>,
  body: InputOf<Req>,
): Uint8Array[] {
  const to = new WireWriter()
  to.startFrame()
  to.int16(key)
  to.int16(version)
  to.int32(correlationId)
  CLIENT_ID.write(to, clientId)
  if (version >= flexibleSince) TAGS.write(to, {})
  request.write(version, to, body)
  return to.finishFrame()
}

/** Takes a frame without its length. Nothing may follow the body. @throws OdradekError PROTOCOL_ERROR */
export function readResponse<Res extends Struct>(
  { key, response, flexibleSince }: Api<Struct, Res>,
  version: number,
  frame: Uint8Array,
): { readonly correlationId: number; readonly body: ValueOf<Res> } {
  const from = new WireReader(frame)
  const correlationId = from.int32()
  if (version >= flexibleSince && key !== API_VERSIONS) TAGS.read(from)
  const body = response.read(version, from)
  if (from.left > 0) throw from.malformed(`${from.left} bytes too many`)
  return { correlationId, body }
}

/** A whole frame. */
export function writeResponse<Res extends Struct>(
  { key, response, flexibleSince }: Api<Struct, Res>,
  version: number,
  correlationId: number,
  body: InputOf<Res>,
): Uint8Array[] {
  assert(version >= 0, 'a version')
  const to = new WireWriter()
  to.startFrame()
  to.int32(correlationId)
  if (version >= flexibleSince && key !== API_VERSIONS) TAGS.write(to, {})
  response.write(version, to, body)
  return to.finishFrame()
}
