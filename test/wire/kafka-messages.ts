/** Messages as Kafka's own client writes them: test/fixtures/messages. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Api, Message } from '../../src/wire/api.ts'
import type { Struct } from '../../src/wire/schema.ts'

export type Kind = 'request' | 'response'
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** A frame with its length, and what Kafka says of its body. */
export interface Written {
  readonly key: number
  readonly version: number
  readonly kind: Kind
  /** What was set: nothing; everything; null where it may be; everything, with tagged fields that nobody knows. */
  readonly variant: 'defaults' | 'full' | 'nulls' | 'tagged'
  readonly correlationId: number
  readonly clientId: string | null
  readonly value: { readonly [name: string]: Json }
  readonly frame: Uint8Array
}

/** What Kafka takes for fields that are not there. */
export interface Defaults {
  readonly [name: string]: { readonly value: Json; readonly fields?: Defaults }
}

interface DefaultsOf {
  readonly key: number
  readonly kind: Kind
  readonly defaults: Defaults
}

const path = join(import.meta.dirname, '../fixtures/messages/messages.jsonl.gz')
const lines = gunzipSync(readFileSync(path)).toString().trimEnd().split('\n')
const documents: unknown[] = lines.map((line) => JSON.parse(line))

function isWritten(document: unknown): document is Omit<Written, 'frame'> & { readonly frame: string } {
  return Object.hasOwn(document as object, 'frame')
}

export const WRITTEN: readonly Written[] = documents.filter(isWritten).map((document) => {
  return { ...document, frame: new Uint8Array(Buffer.from(document.frame, 'hex')) }
})

const allDefaults = documents.filter((document) => !isWritten(document)) as readonly DefaultsOf[]

export function writtenFor({ key }: Api, kind: Kind): Written[] {
  return WRITTEN.filter((each) => each.key === key && each.kind === kind)
}

export function defaultsFor({ key }: Api, kind: Kind): Defaults {
  const found = allDefaults.find((each) => each.key === key && each.kind === kind)
  if (found === undefined) throw new Error(`there are no defaults of the ${kind} of API ${key}`)
  return found.defaults
}

export function messageOf(api: Api, kind: Kind): Message<Struct> {
  return kind === 'request' ? api.request : api.response
}

export function versionsOf({ min, max }: Api): number[] {
  return Array.from({ length: max - min + 1 }, (_, i) => min + i)
}
