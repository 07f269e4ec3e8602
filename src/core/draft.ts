/** A record on its way in: everything a caller can get wrong is checked here, before anything is touched. */
import { PoisonValue } from '../log/contract.ts'
import { type Batch, Columns } from '../model/batch.ts'
import { messageOf, OdradekError } from '../model/errors.ts'
import { FLAT_VALUE_BYTES, RECORD_OVERHEAD_BYTES } from '../model/limits.ts'
import type { PublishEntry, PublishOptions } from '../model/options.ts'
import { ID_HEADER, type Key, RecordHeaders } from '../model/record.ts'
import type { StandardIssue, StandardResult, StandardSchemaV1 } from '../model/standard-schema.ts'
import { encoded, type Form, letterForm, reencoded } from './encode.ts'
import { assertKnown, invalid, unknownOption } from './settings.ts'
import type { TopicSettings } from './topic-settings.ts'

type Validate = StandardSchemaV1['~standard']['validate']

/** Sizes are kept in 32 bits. */
const MAX_SIZE_BYTES = 0xffff_ffff

const PUBLISH_OPTIONS = ['key', 'headers', 'partition', 'id', 'signal'] as const
/** Of a record among several, which stands beside its value. */
const ENTRY_OPTIONS = ['value', 'key', 'headers', 'partition', 'id'] as const

/** @throws OdradekError INVALID_ARGUMENT for what is no option: a misspelt key would scatter the records of one key. */
export function checkPublishOptions(options: PublishOptions): void {
  if (typeof options !== 'object') {
    throw invalid(`publish options are an object, such as { key: 'anna' }; got ${typeof options}`)
  }
  for (const name in options) {
    if (!isPublishOption(name)) throw unknownOption('publish', name, PUBLISH_OPTIONS)
  }
}

/**
 * Compared one by one: a search in the list costs a tenth of a publish with a key. An entry of `publishAll` may stand for
 * options, its value with it.
 */
function isPublishOption(name: string): boolean {
  return (
    name === 'key' ||
    name === 'headers' ||
    name === 'partition' ||
    name === 'id' ||
    name === 'signal' ||
    name === 'value'
  )
}

/** A record that passed validation, as its log takes it. */
export interface Draft extends Form {
  readonly key: Key | null
  readonly partition: number | undefined
  readonly id: string | undefined
}

/** `encodes`: its log takes bytes. @throws OdradekError INVALID_VALUE, INVALID_ARGUMENT, TOO_LARGE, UNSUPPORTED */
export function makeDraft(
  topic: string,
  settings: TopicSettings,
  encodes: boolean,
  value: unknown,
  options: Omit<PublishOptions, 'signal'>,
): Draft {
  if (value === undefined) {
    throw new OdradekError('INVALID_VALUE', 'undefined is not a value; publish null for a tombstone')
  }
  const checked = validated(topic, settings.schema, value)
  const key = keyOf(options.key)
  if (key === null && settings.cleanup === 'compact') {
    throw invalid(`"${topic}" is compacted, which goes by the key: every record needs one`)
  }
  const form = formOf(topic, settings, encodes, checked, key, headersOf(options))
  if (form.sizeBytes > settings.retention.bytes) {
    throw new OdradekError(
      'TOO_LARGE',
      `a record of ${form.sizeBytes} bytes; the \`retention\` of topic "${topic}" keeps ${settings.retention.bytes} bytes per partition`,
    )
  }
  // Field by field: a spread takes twenty times as long as the rest of this.
  const { partition, id } = options
  return { value: form.value, key, headers: form.headers, partition, id, sizeBytes: form.sizeBytes }
}

function formOf(
  topic: string,
  settings: TopicSettings,
  encodes: boolean,
  value: unknown,
  key: Key | null,
  headers: RecordHeaders | null,
): Form {
  if (encodes) return encoded(topic, settings.codec, value, key, headers)
  return { value, headers, sizeBytes: sizeOf(topic, settings.sizeOf, value) }
}

/** A draft with bytes of its own: the caller, or the codec, may use again what they gave. */
export function owned(draft: Draft): Draft {
  return draft.value instanceof Uint8Array ? { ...draft, value: new Uint8Array(draft.value) } : draft
}

/** A record that was read from a topic, on its way to another one. */
export interface Copy {
  readonly from: { readonly name: string; readonly settings: TopicSettings }
  readonly value: unknown
  readonly key: Key | null
  readonly headers: RecordHeaders
}

/** A dead letter. Its bytes are those of the record, whatever codec the topic has that takes it. */
export function letterDraft(topic: string, settings: TopicSettings, encodes: boolean, copy: Copy): Draft {
  const { from, value, key, headers } = copy
  if (!encodes) return copiedInMemory(topic, settings, copy)
  const form = letterForm(from.name, from.settings.codec, value, key, headers)
  return { ...form, key, partition: undefined, id: undefined }
}

/** A dead letter on its way back; `undecoded`: its value is what could not be decoded. @throws INVALID_VALUE */
export function returnDraft(
  topic: string,
  settings: TopicSettings,
  encodes: boolean,
  copy: Copy,
  undecoded: boolean,
): Draft {
  const { from, value, key, headers } = copy
  if (!encodes) return copiedInMemory(topic, settings, copy)
  const form = reencoded(from.name, from.settings.codec, value, key, headers, undecoded)
  return { ...form, key, partition: undefined, id: undefined }
}

/** What cannot be decoded is kept as it came. */
function copiedInMemory(topic: string, settings: TopicSettings, { value: given, key, headers }: Copy): Draft {
  const value = given instanceof PoisonValue ? given.bytes : given
  const sizeBytes = sizeOf(topic, settings.sizeOf, value)
  return { value, key, headers, partition: undefined, id: undefined, sizeBytes }
}

/** What `publishAll` was given. @throws OdradekError INVALID_ARGUMENT for what is no entry, such as a bare value */
export function entriesOf(entries: Iterable<PublishEntry>): PublishEntry[] {
  if (typeof entries?.[Symbol.iterator] !== 'function') {
    throw invalid('publishAll takes an iterable of entries { value, key, … }')
  }
  return Array.from(entries, (entry, i) => {
    if (typeof entry !== 'object' || entry === null || !('value' in entry)) {
      throw invalid(`entry ${i} of publishAll is no { value, key, … }`)
    }
    assertKnown('publishAll', entry, ENTRY_OPTIONS)
    return entry
  })
}

/** The caller's bytes may change after the call; the record's key may not. (`slice` of a Buffer is no copy.) */
function keyOf(key: Key | null | undefined): Key | null {
  if (key === undefined || key === null) return null
  if (typeof key === 'string') return key
  if (key instanceof Uint8Array) return new Uint8Array(key)
  throw new OdradekError('INVALID_ARGUMENT', `a key is a string, bytes or null; got ${typeof key}`)
}

function headersOf({ headers, id }: Omit<PublishOptions, 'signal'>): RecordHeaders | null {
  let all = headers === undefined ? null : RecordHeaders.from(headers)
  if (id !== undefined) {
    if (typeof id !== 'string' || id === '') {
      throw new OdradekError('INVALID_ARGUMENT', 'an id is a string that is not empty')
    }
    all = (all ?? new RecordHeaders([])).with(ID_HEADER, id)
  }
  return all?.size === 0 ? null : all
}

/** What the schema makes of a value; a tombstone has nothing to validate. */
export function validated(topic: string, schema: StandardSchemaV1 | null, value: unknown): unknown {
  if (schema === null || value === null) return value
  const result = asked(topic, schema, value)
  if (isThenable(result)) {
    // Nobody is to be told of how it ends.
    result.then(undefined, () => undefined)
    throw new OdradekError(
      'UNSUPPORTED',
      `the schema of "${topic}" validates asynchronously; use a synchronous one`,
    )
  }
  if (result.issues !== undefined) {
    throw unfit(topic, issuesText(result.issues), result.issues)
  }
  if (result.value === undefined) throw unfit(topic, 'it makes it undefined', undefined)
  return result.value
}

function asked(topic: string, schema: StandardSchemaV1, value: unknown): ReturnType<Validate> {
  try {
    return schema['~standard'].validate(value)
  } catch (error) {
    throw unfit(topic, messageOf(error), error)
  }
}

function isThenable(result: ReturnType<Validate>): result is Promise<StandardResult<unknown>> {
  return typeof (result as Promise<unknown>).then === 'function'
}

function unfit(topic: string, why: string, cause: unknown): OdradekError {
  return new OdradekError('INVALID_VALUE', `the value does not fit the schema of "${topic}": ${why}`, {
    cause,
  })
}

/** Nominal bytes: by length, else by the topic's `sizeOf`, else flat. */
export function sizeOf(topic: string, custom: TopicSettings['sizeOf'], value: unknown): number {
  if (typeof value === 'string') return 2 * value.length + RECORD_OVERHEAD_BYTES
  if (value instanceof Uint8Array) return value.byteLength + RECORD_OVERHEAD_BYTES
  if (custom === null || value === null) return FLAT_VALUE_BYTES + RECORD_OVERHEAD_BYTES
  const sizeBytes = custom(value)
  if (!(sizeBytes >= 0) || sizeBytes > MAX_SIZE_BYTES - RECORD_OVERHEAD_BYTES) {
    throw new OdradekError('INVALID_VALUE', `sizeOf of "${topic}" answered ${String(sizeBytes)}`)
  }
  return Math.ceil(sizeBytes) + RECORD_OVERHEAD_BYTES
}

/** Drafts of one partition as a batch of columns. */
export function batchOf(drafts: readonly Draft[]): Batch {
  const columns = new Columns(0, drafts.length)
  let sizeBytes = 0
  for (const draft of drafts) {
    columns.push(draft.value, draft.key, draft.headers, 0, draft.sizeBytes)
    sizeBytes += draft.sizeBytes
  }
  return { count: drafts.length, sizeBytes, columns, bytes: null, producer: null }
}

function issuesText(issues: readonly StandardIssue[]): string {
  return issues
    .slice(0, 3)
    .map(({ message, path }) => {
      const where = path?.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
      return where === undefined || where === '' ? message : `${where}: ${message}`
    })
    .join('; ')
}
