/** From the options of a topic to settings without holes, everything checked. */

import type { RetentionLimits } from '../log/contract.ts'
import { OdradekError } from '../model/errors.ts'
import {
  DEFAULT_MAX_WAITING,
  DEFAULT_MAX_WAITING_BYTES,
  DEFAULT_PUBLISH_TIMEOUT_MS,
  DEFAULT_RETENTION_BYTES,
  DEFAULT_RETENTION_RECORDS,
  MAX_PARTITIONS,
} from '../model/limits.ts'
import type { Retention, TopicChanges, TopicOptions } from '../model/options.ts'
import type { StandardSchemaV1 } from '../model/standard-schema.ts'
import { defaultCodec, type ValueCodec } from '../model/value-codec.ts'
import { count, invalid, positive } from './settings.ts'

export interface TopicSettings {
  readonly partitions: number
  readonly retention: RetentionLimits
  readonly schema: StandardSchemaV1 | null
  readonly dedupe: { readonly windowMs: number; readonly records: number } | null
  readonly codec: ValueCodec
  readonly sizeOf: ((value: unknown) => number) | null
  readonly maxWaiting: { readonly records: number; readonly bytes: number }
  readonly publishTimeoutMs: number
}

const OPTION_NAMES = new Set([
  'partitions',
  'retention',
  'schema',
  'dedupe',
  'codec',
  'sizeOf',
  'maxWaiting',
  'publishTimeoutMs',
])

function schemaOf(schema: unknown): StandardSchemaV1 | null {
  if (schema === undefined) return null
  const given = schema as Partial<StandardSchemaV1> | null
  if (typeof given?.['~standard']?.validate === 'function') return given as StandardSchemaV1
  throw invalid('schema is any Standard Schema v1, such as those of zod, valibot and arktype')
}

const CHANGE_NAMES = new Set(['partitions', 'retention'])

export function topicSettings<T>(options: TopicOptions<T>): TopicSettings {
  checkNames(options, OPTION_NAMES, 'topic option')
  const { dedupe } = options
  return {
    partitions: partitionCount(options.partitions ?? 1),
    retention: retentionLimits(options.retention),
    schema: schemaOf(options.schema),
    dedupe:
      dedupe === undefined || dedupe === false
        ? null
        : {
            windowMs: positive('dedupe.windowMs', dedupe === true ? undefined : dedupe.windowMs, 120_000),
            records: count('dedupe.records', dedupe === true ? undefined : dedupe.records, 100_000),
          },
    codec: options.codec ?? defaultCodec,
    sizeOf: (options.sizeOf as ((value: unknown) => number) | undefined) ?? null,
    maxWaiting: {
      records: count('maxWaiting.records', options.maxWaiting?.records, DEFAULT_MAX_WAITING),
      bytes: positive('maxWaiting.bytes', options.maxWaiting?.bytes, DEFAULT_MAX_WAITING_BYTES),
    },
    publishTimeoutMs: positive('publishTimeoutMs', options.publishTimeoutMs, DEFAULT_PUBLISH_TIMEOUT_MS),
  }
}

/** @throws OdradekError INVALID_ARGUMENT for what a topic cannot change once it exists. */
export function checkChangeNames(changes: TopicChanges): void {
  checkNames(changes, CHANGE_NAMES, 'change of a topic')
}

function checkNames(options: object, known: ReadonlySet<string>, what: string): void {
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw invalid(`unknown ${what} "${name}"`)
  }
}

export function retentionLimits(
  retention: Retention | undefined,
  current?: RetentionLimits,
): RetentionLimits {
  return {
    records: count('retention.records', retention?.records, current?.records ?? DEFAULT_RETENTION_RECORDS),
    bytes: positive('retention.bytes', retention?.bytes, current?.bytes ?? DEFAULT_RETENTION_BYTES),
    ageMs: positive('retention.ageMs', retention?.ageMs, current?.ageMs ?? Number.POSITIVE_INFINITY),
  }
}

export function partitionCount(partitions: number): number {
  const checked = count('partitions', partitions, 1)
  if (checked > MAX_PARTITIONS)
    throw invalid(`a topic has at most ${MAX_PARTITIONS} partitions; got ${checked}`)
  return checked
}

/** Creating a topic again is a no-op when it asks for the same. */
export function assertSameTopic(
  name: string,
  existing: TopicSettings,
  partitions: number,
  wanted: TopicSettings,
): void {
  const differs = (what: string): OdradekError =>
    new OdradekError('TOPIC_EXISTS', `topic "${name}" exists with other ${what}; match it, or use alterTopic`)
  if (partitions !== wanted.partitions) throw differs('partitions')
  for (const part of ['retention', 'dedupe', 'maxWaiting', 'publishTimeoutMs'] as const) {
    if (stable(existing[part]) !== stable(wanted[part])) throw differs(part)
  }
  for (const part of ['schema', 'codec', 'sizeOf'] as const) {
    if (existing[part] !== wanted[part]) throw differs(part)
  }
}

/** JSON has no Infinity, so numbers are spelled out. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === 'number' ? String(each) : each))
}
