/**
 * What `Meta` keeps of a topic: all that makes it behave as it did, before anybody creates it again. What is code
 * (schema, codec, sizeOf) comes back with the next `createTopic`. Parts that came later may be missing.
 */
import type { RetentionLimits } from '../log/contract.ts'
import type { TopicOptions } from '../model/options.ts'
import type { TopicSettings } from './topic-settings.ts'

/** `null` is without end, which JSON cannot say. */
type Limit = number | null

export interface StoredTopic {
  readonly name: string
  readonly partitions: number
  readonly retention: { readonly records: Limit; readonly bytes: Limit; readonly ageMs: Limit }
  readonly deadLetter: boolean
  readonly cleanup?: TopicSettings['cleanup']
  readonly deleteRetentionMs?: Limit
  readonly dedupe?: { readonly windowMs: Limit; readonly records: number } | null
  readonly maxWaiting?: { readonly records: number; readonly bytes: Limit }
  readonly publishTimeoutMs?: Limit
}

export function storedTopic(
  name: string,
  settings: TopicSettings,
  partitions: number,
  retention: RetentionLimits,
  deadLetter: boolean,
): StoredTopic {
  const { cleanup, deleteRetentionMs, dedupe, maxWaiting, publishTimeoutMs } = settings
  return {
    name,
    partitions,
    retention: {
      records: limit(retention.records),
      bytes: limit(retention.bytes),
      ageMs: limit(retention.ageMs),
    },
    deadLetter,
    cleanup,
    deleteRetentionMs: limit(deleteRetentionMs),
    dedupe: dedupe && { windowMs: limit(dedupe.windowMs), records: dedupe.records },
    maxWaiting: { records: maxWaiting.records, bytes: limit(maxWaiting.bytes) },
    publishTimeoutMs: limit(publishTimeoutMs),
  }
}

/** The options that make a topic of it. */
export function optionsOf({
  partitions,
  retention,
  dedupe,
  maxWaiting,
  ...stored
}: StoredTopic): TopicOptions {
  const { cleanup, deleteRetentionMs, publishTimeoutMs } = stored
  return {
    partitions,
    retention: {
      records: unlimited(retention.records),
      bytes: unlimited(retention.bytes),
      ageMs: unlimited(retention.ageMs),
    },
    ...(cleanup === undefined ? {} : { cleanup }),
    ...(deleteRetentionMs === undefined ? {} : { deleteRetentionMs: unlimited(deleteRetentionMs) }),
    ...(dedupe ? { dedupe: { windowMs: unlimited(dedupe.windowMs), records: dedupe.records } } : {}),
    ...(maxWaiting === undefined
      ? {}
      : { maxWaiting: { records: maxWaiting.records, bytes: unlimited(maxWaiting.bytes) } }),
    ...(publishTimeoutMs === undefined ? {} : { publishTimeoutMs: unlimited(publishTimeoutMs) }),
  }
}

function limit(value: number): Limit {
  return value === Number.POSITIVE_INFINITY ? null : value
}

function unlimited(value: Limit): number {
  return value ?? Number.POSITIVE_INFINITY
}
