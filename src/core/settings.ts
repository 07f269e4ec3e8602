/**
 * From the options a caller wrote to settings without holes: defaults filled in, everything checked.
 * Settings of a reader are fixed by its first member; `assertSame` holds later ones to them.
 */
import { OdradekError } from '../model/errors.ts'
import {
  DEFAULT_ACK_TIMEOUT_MS,
  DEFAULT_GRACE_MS,
  DEFAULT_RETRY_ATTEMPTS,
  DEFAULT_RETRY_DELAY_MS,
  DEFAULT_RETRY_MAX_DELAY_MS,
} from '../model/limits.ts'
import type {
  AckMode,
  Assignment,
  BatchSubscribeOptions,
  DeliveryStrategy,
  Guarantee,
  Order,
  Overflow,
  StartPosition,
  StrategyName,
  SubscribeOptions,
} from '../model/options.ts'
import { checkName, checkTopicName } from './names.ts'

export interface RetrySettings {
  readonly attempts: number
  readonly delayMs: number
  readonly maxDelayMs: number
  readonly jitter: number
}

export interface ReaderSettings {
  readonly from: StartPosition
  readonly overflow: Overflow
  readonly maxLagRecords: number
  readonly maxLagBytes: number
  readonly guarantee: Guarantee
  readonly order: Order
  readonly retry: RetrySettings
  /** `undefined`: the default name of each topic. */
  readonly deadLetter: string | false | undefined
  readonly assignment: Assignment
  readonly strategy: StrategyName | DeliveryStrategy
  readonly graceMs: number
}

export interface BatchSettings {
  readonly records: number
  readonly maxWaitMs: number
}

export interface MemberSettings {
  readonly id: string | undefined
  readonly ack: AckMode
  readonly ackTimeoutMs: number
  readonly concurrency: number
  readonly manualCredit: boolean
  readonly weight: number
  readonly batch: BatchSettings | undefined
  readonly signal: AbortSignal | undefined
}

type Options = SubscribeOptions & Partial<Pick<BatchSubscribeOptions, 'batch'>>

const OPTION_NAMES = [
  'group',
  'id',
  'from',
  'overflow',
  'maxLag',
  'guarantee',
  'order',
  'retry',
  'deadLetter',
  'assignment',
  'strategy',
  'graceMs',
  'ack',
  'ackTimeoutMs',
  'concurrency',
  'credit',
  'weight',
  'signal',
  'batch',
] as const

export function memberSettings(options: Options): MemberSettings {
  known('subscribe', options, OPTION_NAMES)
  if (options.id !== undefined) checkName('id', options.id)
  if (options.group !== undefined) checkName('group', options.group)
  return {
    id: options.id,
    ack: oneOf('ack', options.ack, ['auto', 'manual'], 'auto'),
    ackTimeoutMs: positive('ackTimeoutMs', options.ackTimeoutMs, DEFAULT_ACK_TIMEOUT_MS),
    concurrency: count('concurrency', options.concurrency, 1),
    manualCredit: oneOf('credit', options.credit, ['auto', 'manual'], 'auto') === 'manual',
    weight: finite('weight', positive('weight', options.weight, 1)),
    batch: batchSettings(options.batch),
    signal: signalOf(options.signal),
  }
}

function batchSettings(batch: Options['batch']): BatchSettings | undefined {
  if (batch === undefined) return undefined
  if (typeof batch === 'number') return { records: count('batch', batch, 1), maxWaitMs: 0 }
  const { records, maxWaitMs } = known('batch', batch, ['records', 'maxWaitMs'])
  return {
    records: count('batch.records', records, 1),
    maxWaitMs: nonNegative('batch.maxWaitMs', maxWaitMs, 0),
  }
}

/** A signal, if there is one: what is none must not be found out when half is done. */
export function signalOf(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal === undefined || typeof signal?.addEventListener === 'function') return signal
  throw invalid('signal is an AbortSignal: the `signal` of an AbortController')
}

export function readerSettings(options: Options): ReaderSettings {
  const named = options.group !== undefined || options.id !== undefined
  const group = options.group !== undefined
  if (!group && (options.assignment !== undefined || options.strategy !== undefined)) {
    throw invalid('assignment and strategy belong to groups; name one with `group`')
  }
  const overflow = oneOf(
    'overflow',
    options.overflow,
    ['wait', 'reject', 'drop-oldest', 'drop-newest'],
    named ? 'wait' : 'drop-oldest',
  )
  if (!named && overflow !== 'drop-oldest') {
    throw invalid(
      `overflow "${overflow}" needs an id or a group: a reader without a name never holds the log`,
    )
  }
  const gating = overflow === 'wait' || overflow === 'reject'
  if (gating && options.maxLag !== undefined) {
    throw invalid(
      `maxLag is for drop-oldest and drop-newest; with "${overflow}" retention alone bounds the lag`,
    )
  }
  const assignment = oneOf(
    'assignment',
    options.assignment,
    ['shared', 'range', 'round-robin', 'sticky'],
    'shared',
  )
  if (assignment !== 'shared' && options.strategy !== undefined) {
    throw invalid(`strategy is for shared groups; "${assignment}" assigns whole partitions`)
  }
  const guarantee = oneOf('guarantee', options.guarantee, ['at-least-once', 'at-most-once'], 'at-least-once')
  assertAcks(guarantee, options)
  const parallel = (options.concurrency ?? 1) > 1
  const whole = assignment !== 'shared' || (!group && !parallel)
  if (options.deadLetter !== undefined && options.deadLetter !== false) {
    checkTopicName(checkName('deadLetter', options.deadLetter))
  }
  if (options.from !== undefined) checkFrom(options.from)
  const maxLag = known('maxLag', options.maxLag, ['records', 'bytes'])
  return {
    from: options.from ?? 'latest',
    overflow,
    maxLagRecords: count('maxLag.records', maxLag.records, Number.POSITIVE_INFINITY),
    maxLagBytes: positive('maxLag.bytes', maxLag.bytes, Number.POSITIVE_INFINITY),
    guarantee,
    order: oneOf('order', options.order, ['partition', 'key', 'none'], whole ? 'partition' : 'key'),
    retry: retrySettings(options.retry),
    deadLetter: options.deadLetter,
    assignment,
    strategy: options.strategy ?? 'round-robin',
    graceMs: nonNegative('graceMs', options.graceMs, DEFAULT_GRACE_MS),
  }
}

function assertAcks(guarantee: Guarantee, { ack, retry, deadLetter }: Options): void {
  if (guarantee === 'at-least-once' || (ack !== 'manual' && !retry && !deadLetter)) return
  throw invalid('at-most-once commits before the handler runs: it has no ack, retry or deadLetter')
}

function retrySettings(given: SubscribeOptions['retry']): RetrySettings {
  const retry = known('retry', given, RETRY_PARTS)
  const delayMs = finite('retry.delayMs', nonNegative('retry.delayMs', retry.delayMs, DEFAULT_RETRY_DELAY_MS))
  const jitter = nonNegative('retry.jitter', retry.jitter, 0.2)
  if (jitter > 1) throw invalid(`retry.jitter is a share from 0 to 1, got ${jitter}`)
  return {
    attempts: count('retry.attempts', retry.attempts, DEFAULT_RETRY_ATTEMPTS),
    delayMs,
    maxDelayMs: nonNegative(
      'retry.maxDelayMs',
      retry.maxDelayMs,
      Math.max(delayMs, DEFAULT_RETRY_MAX_DELAY_MS),
    ),
    jitter,
  }
}

/** Whether a reader may go on with other settings as the same one. Where it begins does not matter any more. */
export function sameSettings(a: ReaderSettings, b: ReaderSettings): boolean {
  return (
    a.strategy === b.strategy &&
    JSON.stringify({ ...a, from: null, strategy: null }) ===
      JSON.stringify({ ...b, from: null, strategy: null })
  )
}

/** Later members of a group omit what belongs to the reader, or say the same. */
export function assertSame(group: string, fixed: ReaderSettings, options: Options): void {
  const compare = (name: string, mine: unknown, theirs: unknown): void => {
    if (mine === undefined || JSON.stringify(mine) === JSON.stringify(theirs)) return
    throw new OdradekError(
      'INCONSISTENT_GROUP',
      `group "${group}" was opened with ${name} ${JSON.stringify(theirs)}; this member asks for ${JSON.stringify(mine)}. ` +
        'Omit it, match it, or use another group',
    )
  }
  for (const name of SIMPLE_READER_OPTIONS) compare(name, options[name], fixed[name])
  for (const part of RETRY_PARTS) compare(`retry.${part}`, options.retry?.[part], fixed.retry[part])
  compare('maxLag.records', options.maxLag?.records, fixed.maxLagRecords)
  compare('maxLag.bytes', options.maxLag?.bytes, fixed.maxLagBytes)
  if (options.strategy !== undefined && options.strategy !== fixed.strategy) {
    compare('strategy', nameOf(options.strategy), nameOf(fixed.strategy))
    throw new OdradekError('INCONSISTENT_GROUP', `group "${group}" was opened with another strategy object`)
  }
  assertAcks(fixed.guarantee, options)
}

const SIMPLE_READER_OPTIONS = [
  'overflow',
  'guarantee',
  'order',
  'deadLetter',
  'assignment',
  'graceMs',
  'from',
] as const
const RETRY_PARTS = ['attempts', 'delayMs', 'maxDelayMs', 'jitter'] as const

function nameOf(strategy: StrategyName | DeliveryStrategy): string {
  return typeof strategy === 'string' ? strategy : 'a custom strategy'
}

/** Checks the shape only; whether offsets exist is the reader's to say. */
export function checkFrom(from: unknown): void {
  if (from === 'earliest' || from === 'latest') return
  if (from instanceof Date) {
    if (Number.isNaN(from.getTime())) throw invalid('the date to start from is not a valid one')
    return
  }
  if (typeof from === 'number') {
    checkOffset(from)
    return
  }
  if (typeof from === 'object' && from !== null) {
    const offsets = Object.entries(from)
    if (offsets.length === 0)
      throw invalid('a position names at least one partition, as { partition: offset }')
    for (const [partition, offset] of offsets) {
      if (!/^\d+$/.test(partition)) throw invalid(`"${partition}" is not a partition number`)
      checkOffset(offset)
    }
    return
  }
  throw invalid(
    `a position is 'earliest', 'latest', a Date, an offset or { partition: offset }; got ${shown(from)}`,
  )
}

export function checkOffset(offset: unknown): void {
  if (typeof offset !== 'number' || !Number.isInteger(offset)) {
    throw invalid(`an offset is a whole number; got ${shown(offset)}`)
  }
}

/** What was given, if it is an object that says nothing unknown. */
export function known<T extends object>(
  what: string,
  options: T | undefined,
  names: readonly (keyof T & string)[],
): Partial<T> {
  if (options === undefined) return {}
  if (typeof options !== 'object' || options === null) {
    throw invalid(`${what} options are an object; got ${shown(options)}`)
  }
  assertKnown(what, options, names)
  return options
}

/** Inherited names count: what is read of an object need not be its own. */
export function assertKnown(what: string, options: object, names: readonly string[]): void {
  for (const name in options) {
    if (!names.includes(name)) throw unknownOption(what, name, names)
  }
}

export function unknownOption(what: string, name: string, names: readonly string[]): OdradekError {
  return invalid(`unknown ${what} option "${name}"; there are ${names.join(', ')}`)
}

export function oneOf<T extends string>(
  name: string,
  value: T | undefined,
  allowed: readonly T[],
  otherwise: T,
): T {
  if (value === undefined) return otherwise
  if (allowed.includes(value)) return value
  throw invalid(`${name} is one of ${allowed.join(', ')}; got ${shown(value)}`)
}

export function flag(name: string, value: boolean | undefined, otherwise: boolean): boolean {
  if (value === undefined) return otherwise
  if (typeof value === 'boolean') return value
  throw invalid(`${name} is true or false; got ${shown(value)}`)
}

/** A whole number from 1 on; Infinity only as the default. */
export function count(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw invalid(`${name} is a whole number from 1 on; got ${shown(value)}`)
}

export function positive(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (typeof value === 'number' && value > 0) return value
  throw invalid(`${name} is a number above 0; got ${shown(value)}`)
}

export function nonNegative(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (typeof value === 'number' && value >= 0) return value
  throw invalid(`${name} is a number from 0 on; got ${shown(value)}`)
}

function finite(name: string, value: number): number {
  if (value !== Number.POSITIVE_INFINITY) return value
  throw invalid(`${name} is a finite number; got ${value}`)
}

/** As it would be written: text in quotes, so that '3' and 3 can be told apart. */
function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

export function invalid(message: string): OdradekError {
  return new OdradekError('INVALID_ARGUMENT', message)
}
