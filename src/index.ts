/**
 * `odradek`: the public names, one by one, and `openBroker`, the composition root: it picks the engine by
 * the URL's scheme and plugs in what only Node has.
 */
import { channel } from 'node:diagnostics_channel'
import type { Broker, BrokerOptions, TopicMap } from './broker.ts'
import type { FileEngineOptions as FileOptions } from './log/file/file-engine.ts'
import { createBroker } from './memory.ts'
import { OdradekError } from './model/errors.ts'
import { lazyCompression } from './node/compression.ts'
import { lazyCrc32c } from './node/crc32c.ts'

export type { Broker, BrokerOptions, CloseResult, TopicMap, TopicName, TopicValue } from './broker.ts'
export type { RedriveResult } from './coordinator/redrive.ts'
export type { Subscription } from './coordinator/subscription.ts'
export type { Transaction, TransactionOptions } from './coordinator/transactions.ts'
export type { RecordStream } from './core/stream.ts'
export type { FileEngineOptions as FileOptions } from './log/file/file-engine.ts'
export type { Clock, Timer } from './model/clock.ts'
export type { Delivery, DeliveryBatch, NackOptions } from './model/delivery.ts'
export { BatchError, ERROR_CODES, type ErrorCode, OdradekError } from './model/errors.ts'
export { KiB, MiB } from './model/limits.ts'
export type {
  AckMode,
  Assignment,
  BatchHandler,
  BatchSubscribeOptions,
  BatchSubscriber,
  CloseOptions,
  DedupeOptions,
  DeliveryStrategy,
  Guarantee,
  Handler,
  MemberOptions,
  MemberView,
  Order,
  Overflow,
  Position,
  PublishEntry,
  Published,
  PublishOptions,
  ReaderOptions,
  ReaderRef,
  RedriveOptions,
  Retention,
  RetryOptions,
  StartPosition,
  StrategyName,
  StreamOptions,
  SubscribeOptions,
  Subscriber,
  TopicChanges,
  TopicOptions,
} from './model/options.ts'
export {
  type HeadersInit,
  type HeaderValue,
  type Key,
  type LogRecord,
  RecordHeaders,
} from './model/record.ts'
export type { StandardIssue, StandardResult, StandardSchemaV1 } from './model/standard-schema.ts'
export { defaultCodec, type EncodedValue, type ValueCodec } from './model/value-codec.ts'
export type {
  BrokerEvents,
  Counters,
  CursorDescription,
  HistogramSnapshot,
  Logger,
  MemberDescription,
  MetricsSnapshot,
  PartitionDescription,
  ReaderDescription,
  ReaderMetrics,
  TopicDescription,
  TopicMetrics,
} from './model/views.ts'
export type { TopicHandle } from './topic-handle.ts'

/** `durability` and what else is about files: with `file:` only. */
export interface OpenOptions extends BrokerOptions, FileOptions {}

const FILE_OPTIONS = [
  'durability',
  'flushMs',
  'salvage',
  'journalBytes',
  'segmentBytes',
  'cacheBytes',
] as const

/**
 * Opens a broker. `memory:` (the default) keeps everything in this process, `file:./data` in a directory that it
 * owns until it is closed.
 * @param url `memory:`, optionally with a name that is only a label; `file:` with a path, relative or not.
 * @throws OdradekError UNSUPPORTED for a scheme without an engine, INVALID_ARGUMENT for what is no URL and for unknown
 * options; with `file:` also DATA_LOCKED, CORRUPT_LOG, STORAGE_ERROR, STORAGE_FULL
 */
export async function openBroker<Map extends object = TopicMap>(
  url = 'memory:',
  options: OpenOptions = {},
): Promise<Broker<Map>> {
  if (typeof url !== 'string') {
    throw new OdradekError(
      'INVALID_ARGUMENT',
      `a broker URL is text, such as "memory:", and options come after it; got ${typeof url}`,
    )
  }
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  if (scheme === undefined) {
    throw new OdradekError('INVALID_ARGUMENT', `"${url}" is no broker URL; try "memory:" or "file:./data"`)
  }
  if (scheme === 'memory') {
    return createBroker<Map>(options, { observe, crc32c: lazyCrc32c(), compression: lazyCompression() })
  }
  if (scheme === 'file') {
    const { files, rest } = splitOptions(options)
    const { openFiles } = await import('./node/open-files.ts')
    return openFiles<Map>(url, rest, files, { observe })
  }
  throw new OdradekError(
    'UNSUPPORTED',
    `there is no engine for "${scheme}:" in this version; "memory:" and "file:" are there`,
  )
}

function splitOptions(options: OpenOptions): { readonly files: FileOptions; readonly rest: BrokerOptions } {
  // The broker refuses it.
  if (typeof options !== 'object' || options === null) return { files: {}, rest: options }
  const entries = Object.entries(options)
  const isOfFiles = ([name]: [string, unknown]): boolean => (FILE_OPTIONS as readonly string[]).includes(name)
  return {
    files: Object.fromEntries(entries.filter(isOfFiles)),
    rest: Object.fromEntries(entries.filter((entry) => !isOfFiles(entry))),
  }
}

/** Lifecycle events on the channels `odradek:<event>`, for whoever instruments the process. */
function observe(name: string, event: unknown): void {
  const events = channel(`odradek:${name}`)
  if (events.hasSubscribers) events.publish(event)
}
