/** What is broken: every message in every version as Kafka's own client writes it, and how it is read. */
import type { Api, Message } from '../../../src/wire/api.ts'
import { readRequest, readRequestHeader, readResponse } from '../../../src/wire/api.ts'
import { APIS } from '../../../src/wire/apis.ts'
import { WireReader } from '../../../src/wire/reader.ts'
import type { Struct } from '../../../src/wire/schema.ts'
import { type Kind, messageOf, WRITTEN, type Written } from '../../wire/kafka-messages.ts'

export interface Sample {
  readonly name: string
  readonly api: Api
  readonly kind: Kind
  readonly version: number
  readonly message: Message<Struct>
  /** Without its length. */
  readonly frame: Uint8Array
  /** Where the body begins; −1 where tagged fields stand in front of it. */
  readonly bodyAt: number
}

function sampleOf(written: Written): Sample {
  const { key, kind, version, variant } = written
  const api = APIS.find((each) => each.key === key)
  if (api === undefined) throw new Error(`there is no API ${key}`)
  const frame = written.frame.subarray(4)
  return {
    name: `${api.name} ${version} ${kind} ${variant}`,
    api,
    kind,
    version,
    message: messageOf(api, kind),
    frame,
    bodyAt: variant === 'tagged' ? -1 : bodyAt(api, written, frame),
  }
}

function bodyAt({ key, flexibleSince }: Api, { kind, version }: Written, frame: Uint8Array): number {
  const from = new WireReader(frame)
  if (kind === 'request') readRequestHeader(from)
  else from.int32()
  const hasTags = version >= flexibleSince && (kind === 'request' || key !== 18)
  return from.at + (hasTags ? 1 : 0)
}

export const CORPUS: readonly Sample[] = WRITTEN.map(sampleOf)

/** As a server or a client reads a frame. Header and body of a request belong to the API, whatever the header says. */
export function readFrame({ api, kind, version }: Sample, frame: Uint8Array): unknown {
  if (kind === 'response') return readResponse(api, version, frame).body
  const from = new WireReader(frame)
  readRequestHeader(from)
  return readRequest(api, version, from)
}
