/** From the options of a topic to settings without holes, everything checked. */

import type { Cleanup, Engine, RetentionLimits } from '../log/contract.ts'
import { OdradekError } from '../model/errors.ts'
import {
  DEFAULT_DEDUPE_MS,
  DEFAULT_DEDUPE_RECORDS,
  DEFAULT_DELETE_RETENTION_MS,
  DEFAULT_MAX_WAITING,
  DEFAULT_MAX_WAITING_BYTES,
  DEFAULT_PUBLISH_TIMEOUT_MS,
  MAX_PARTITIONS,
} from '../model/limits.ts'
import type { Retention, TopicChanges, TopicOptions } from '../model/options.ts'
import type { StandardSchemaV1 } from '../model/standard-schema.ts'
import { defaultCodec, type ValueCodec } from '../model/value-codec.ts'
import { count, invalid, known, nonNegative, oneOf, positive } from './settings.ts'

export interface TopicSettings {
  readonly partitions: number
  readonly retention: RetentionLimits
  readonly cleanup: Cleanup
  readonly deleteRetentionMs: number
  readonly schema: StandardSchemaV1 | null
  readonly dedupe: { readonly windowMs: number; readonly records: number } | null
  readonly codec: ValueCodec
  readonly sizeOf: ((value: unknown) => number) | null
  readonly maxWaiting: { readonly records: number; readonly bytes: number }
  readonly publishTimeoutMs: number
}

/** How logs give up records. */
export type Cleaning = Pick<TopicSettings, 'retention' | 'cleanup' | 'deleteRetentionMs'>

/** What settings depend on of the engine that is to keep them. */
export type EngineTraits = Pick<Engine, 'scheme' | 'encodes' | 'compacts' | 'retention'>

const OPTIONS = [
  'partitions',
  'retention',
  'cleanup',
  'deleteRetentionMs',
  'schema',
  'dedupe',
  'codec',
  'sizeOf',
  'maxWaiting',
  'publishTimeoutMs',
] as const

/** A compacted log is bounded by its keys. The newest record of one goes only if somebody asks for that. */
const ENDLESS: RetentionLimits = {
  records: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  ageMs: Number.POSITIVE_INFINITY,
}

/** @throws OdradekError INVALID_ARGUMENT; UNSUPPORTED for what the engine cannot do */
export function topicSettings<T>(given: TopicOptions<T>, engine: EngineTraits): TopicSettings {
  const options = known('topic', given, OPTIONS)
  const maxWaiting = known('maxWaiting', options.maxWaiting, ['records', 'bytes'])
  const cleanup = cleanupOf(options.cleanup, engine)
  return {
    partitions: partitionCount(options.partitions ?? 1),
    retention: retentionLimits(options.retention, cleanup === 'compact' ? ENDLESS : engine.retention, engine),
    cleanup,
    deleteRetentionMs: nonNegative(
      'deleteRetentionMs',
      options.deleteRetentionMs,
      DEFAULT_DELETE_RETENTION_MS,
    ),
    schema: schemaOf(options.schema),
    dedupe: dedupeOf(options.dedupe),
    codec: codecOf(options.codec),
    sizeOf: sizeOfOf(options.sizeOf),
    maxWaiting: {
      records: count('maxWaiting.records', maxWaiting.records, DEFAULT_MAX_WAITING),
      bytes: positive('maxWaiting.bytes', maxWaiting.bytes, DEFAULT_MAX_WAITING_BYTES),
    },
    publishTimeoutMs: positive('publishTimeoutMs', options.publishTimeoutMs, DEFAULT_PUBLISH_TIMEOUT_MS),
  }
}

/** @throws OdradekError INVALID_ARGUMENT for what a topic cannot change once it exists. */
export function checkChanges(changes: TopicChanges): void {
  known('alterTopic', changes, ['partitions', 'retention'])
}

function cleanupOf(given: Cleanup | undefined, engine: EngineTraits): Cleanup {
  const cleanup = oneOf('cleanup', given, ['delete', 'compact'], 'delete')
  if (cleanup === 'delete' || engine.compacts) return cleanup
  throw new OdradekError('UNSUPPORTED', `logs of the engine "${engine.scheme}:" are not compacted`)
}

function schemaOf(schema: unknown): StandardSchemaV1 | null {
  if (schema === undefined) return null
  const given = schema as Partial<StandardSchemaV1> | null
  if (typeof given?.['~standard']?.validate === 'function') return given as StandardSchemaV1
  throw invalid('schema is any Standard Schema v1, such as those of zod, valibot and arktype')
}

function dedupeOf(dedupe: TopicOptions['dedupe']): TopicSettings['dedupe'] {
  if (dedupe === undefined || dedupe === false) return null
  const { windowMs, records } = known('dedupe', dedupe === true ? {} : dedupe, ['windowMs', 'records'])
  return {
    windowMs: positive('dedupe.windowMs', windowMs, DEFAULT_DEDUPE_MS),
    records: count('dedupe.records', records, DEFAULT_DEDUPE_RECORDS),
  }
}

function codecOf(codec: ValueCodec | undefined): ValueCodec {
  if (codec === undefined) return defaultCodec
  if (typeof codec?.encode === 'function' && typeof codec.decode === 'function') return codec
  throw invalid('codec is an object with the methods encode and decode')
}

function sizeOfOf(sizeOf: unknown): TopicSettings['sizeOf'] {
  if (sizeOf === undefined) return null
  if (typeof sizeOf === 'function') return sizeOf as (value: unknown) => number
  throw invalid('sizeOf is a function from a value to its bytes')
}

/** What is given, over what holds otherwise. */
export function retentionLimits(
  given: Retention | undefined,
  otherwise: RetentionLimits,
  engine: EngineTraits,
): RetentionLimits {
  const { records, bytes, ageMs } = known('retention', given, ['records', 'bytes', 'ageMs'])
  const limits = {
    records:
      records === Number.POSITIVE_INFINITY ? records : count('retention.records', records, otherwise.records),
    bytes: positive('retention.bytes', bytes, otherwise.bytes),
    ageMs: positive('retention.ageMs', ageMs, otherwise.ageMs),
  }
  // Age alone is no bound: how much comes within it is up to publishers.
  const endless = limits.records === Number.POSITIVE_INFINITY && limits.bytes === Number.POSITIVE_INFINITY
  if (endless && !engine.encodes) throw invalid('in memory, retention is bounded by records or by bytes')
  return limits
}

export function partitionCount(partitions: number): number {
  const checked = count('partitions', partitions, 1)
  if (checked > MAX_PARTITIONS)
    throw invalid(`a topic has at most ${MAX_PARTITIONS} partitions; got ${checked}`)
  return checked
}

/**
 * Creating a topic again is a no-op when it asks for the same. One that was `restored` takes what its log does not go
 * by from whoever creates it first: the program may have changed since.
 */
export function assertSameTopic(
  name: string,
  existing: TopicSettings,
  partitions: number,
  wanted: TopicSettings,
  restored: boolean,
): void {
  const differs = (what: string): OdradekError =>
    new OdradekError('TOPIC_EXISTS', `topic "${name}" exists with other ${what}; match it, or use alterTopic`)
  if (partitions !== wanted.partitions) throw differs('partitions')
  for (const part of restored ? OF_THE_LOG : COMPARED) {
    if (!isSamePart(existing, wanted, part)) throw differs(part)
  }
  for (const part of restored ? [] : IDENTICAL) {
    if (existing[part] !== wanted[part]) throw differs(part)
  }
}

/** What the log itself goes by. */
const OF_THE_LOG = ['retention', 'cleanup', 'deleteRetentionMs'] as const
const COMPARED = [...OF_THE_LOG, 'dedupe', 'maxWaiting', 'publishTimeoutMs'] as const
const IDENTICAL = ['schema', 'codec', 'sizeOf'] as const

/** Whether all that is stored of them is the same. */
export function isSame(a: TopicSettings, b: TopicSettings): boolean {
  return COMPARED.every((part) => isSamePart(a, b, part))
}

function isSamePart(a: TopicSettings, b: TopicSettings, part: (typeof COMPARED)[number]): boolean {
  return stable(a[part]) === stable(b[part])
}

/** JSON has no Infinity, so numbers are spelled out. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === 'number' ? String(each) : each))
}
