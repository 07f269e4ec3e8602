import { describe, expect, it } from 'vitest'
import { assertSame, memberSettings, readerSettings } from '../../src/core/settings.ts'
import type { BatchSubscribeOptions, DeliveryStrategy, SubscribeOptions } from '../../src/model/options.ts'
import { codeOf, codeThrown, upTo, World } from '../support/world.ts'

type Options = SubscribeOptions & Partial<Pick<BatchSubscribeOptions, 'batch'>>
const INFINITE = Number.POSITIVE_INFINITY

describe('the settings of a reader', () => {
  it('are, for a subscription without a name', () => {
    expect(readerSettings({})).toEqual({
      from: 'latest',
      overflow: 'drop-oldest',
      maxLagRecords: INFINITE,
      maxLagBytes: INFINITE,
      guarantee: 'at-least-once',
      order: 'partition',
      retry: { attempts: 5, delayMs: 50, maxDelayMs: 1_000, jitter: 0.2 },
      deadLetter: undefined,
      assignment: 'shared',
      strategy: 'round-robin',
      graceMs: 30_000,
    })
  })

  it.each<[string, Options, object]>([
    ['an id holds the log', { id: 'a' }, { overflow: 'wait' }],
    ['a group holds the log', { group: 'g' }, { overflow: 'wait' }],
    ['broadcast at concurrency 1 keeps the order of a partition', { id: 'a' }, { order: 'partition' }],
    ['broadcast at more keeps that of a key', { id: 'a', concurrency: 2 }, { order: 'key' }],
    ['a shared group keeps that of a key', { group: 'g' }, { order: 'key' }],
    [
      'a consumer group keeps that of a partition',
      { group: 'g', assignment: 'range', concurrency: 9 },
      { order: 'partition' },
    ],
    ['what is said goes before that', { group: 'g', order: 'none' }, { order: 'none' }],
    [
      'a longer delay raises its cap',
      { retry: { delayMs: 5_000 } },
      { retry: { attempts: 5, delayMs: 5_000, maxDelayMs: 5_000, jitter: 0.2 } },
    ],
    [
      'a cap may be below the delay',
      { retry: { maxDelayMs: 5 } },
      { retry: { attempts: 5, delayMs: 50, maxDelayMs: 5, jitter: 0.2 } },
    ],
    ['no dead letters', { deadLetter: false }, { deadLetter: false }],
    [
      'a bound of its own',
      { overflow: 'drop-oldest', maxLag: { records: 5, bytes: 0.5 } },
      { maxLagRecords: 5, maxLagBytes: 0.5 },
    ],
    ['no grace at all', { id: 'a', graceMs: 0 }, { graceMs: 0 }],
  ])('follow from what is said: %s', (_, options, expected) => {
    expect(readerSettings(options)).toMatchObject(expected)
  })

  it.each<[string, object]>([
    ['overflow', { id: 'a', overflow: 'block' }],
    ['guarantee', { guarantee: 'exactly-once' }],
    ['order', { order: 'total' }],
    ['assignment', { group: 'g', assignment: 'cooperative' }],
    ['assignment without a group', { id: 'a', assignment: 'range' }],
    ['strategy without a group', { strategy: 'weighted' }],
    ['strategy of a consumer group', { group: 'g', assignment: 'sticky', strategy: 'weighted' }],
    ['retry.attempts', { retry: { attempts: 0 } }],
    ['retry.attempts, not whole', { retry: { attempts: 1.5 } }],
    ['retry.attempts, for ever', { retry: { attempts: INFINITE } }],
    ['retry.delayMs', { retry: { delayMs: -1 } }],
    ['retry.maxDelayMs', { retry: { maxDelayMs: Number.NaN } }],
    ['retry.jitter below 0', { retry: { jitter: -0.1 } }],
    ['retry.jitter above 1', { retry: { jitter: 1.1 } }],
    ['deadLetter', { deadLetter: '' }],
    ['deadLetter: true', { deadLetter: true }],
    ['graceMs', { graceMs: -1 }],
    ['from', { from: 'beginning' }],
    ['at-most-once with manual acks', { guarantee: 'at-most-once', ack: 'manual' }],
    ['at-most-once with retries', { guarantee: 'at-most-once', retry: {} }],
    ['at-most-once with dead letters', { guarantee: 'at-most-once', deadLetter: 'dlq.x' }],
  ])('are refused where they make no sense: %s', (_, options) => {
    expect(codeThrown(() => readerSettings(options as Options))).toBe('INVALID_ARGUMENT')
  })

  it('of at-most-once may say that there are no dead letters', () => {
    expect(readerSettings({ guarantee: 'at-most-once', deadLetter: false }).guarantee).toBe('at-most-once')
  })
})

describe('the settings of a member', () => {
  it('are, unless it says otherwise', () => {
    expect(memberSettings({})).toEqual({
      id: undefined,
      ack: 'auto',
      ackTimeoutMs: 30_000,
      concurrency: 1,
      manualCredit: false,
      weight: 1,
      batch: undefined,
      signal: undefined,
    })
  })

  it('take a batch as a number, or with a time to wait', () => {
    expect(memberSettings({ batch: 10 }).batch).toEqual({ records: 10, maxWaitMs: 0 })
    expect(memberSettings({ batch: { records: 10 } }).batch).toEqual({ records: 10, maxWaitMs: 0 })
    expect(memberSettings({ batch: { records: 1, maxWaitMs: 20 } }).batch).toEqual({
      records: 1,
      maxWaitMs: 20,
    })
  })

  it.each<[string, object]>([
    ['an unknown option', { retries: 5 }],
    ['no object', 'fast' as unknown as object],
    ['null', null as unknown as object],
    ['id', { id: '' }],
    ['id, not a string', { id: 7 }],
    ['group', { group: 'a\nb' }],
    ['ack', { ack: 'none' }],
    ['ackTimeoutMs', { ackTimeoutMs: 0 }],
    ['concurrency', { concurrency: 0 }],
    ['concurrency, for ever', { concurrency: INFINITE }],
    ['credit', { credit: 5 }],
    ['weight', { weight: 0 }],
    ['batch', { batch: 0 }],
    ['batch.records', { batch: { records: 0 } }],
    ['batch.maxWaitMs', { batch: { records: 1, maxWaitMs: -1 } }],
    ['an unknown part of batch', { batch: { records: 1, waitMs: 5 } }],
    ['batch: true', { batch: true }],
    ['a controller instead of its signal', { signal: new AbortController() }],
    ['signal: null', { signal: null }],
  ])('are refused where they make no sense: %s', (_, options) => {
    expect(codeThrown(() => memberSettings(options as Options))).toBe('INVALID_ARGUMENT')
  })

  it.each<[object, string]>([
    [
      { retry: { attempt: 3 } },
      'unknown retry option "attempt"; there are attempts, delayMs, maxDelayMs, jitter',
    ],
    [{ retry: 3 }, 'retry options are an object; got 3'],
    [
      { id: 'a', overflow: 'block' },
      'overflow is one of wait, reject, drop-oldest, drop-newest; got "block"',
    ],
    [{ graceMs: '5' }, 'graceMs is a number from 0 on; got "5"'],
    [
      { from: '2026-01-01' },
      "a position is 'earliest', 'latest', a Date, an offset or { partition: offset }; got \"2026-01-01\"",
    ],
  ])('are refused with what was written and what there is: %j', (options, message) => {
    expect(() => readerSettings(options as Options)).toThrow(message)
  })
})

describe('a later member of a group', () => {
  const strategy: DeliveryStrategy = { select: (_, [first]) => first ?? 'hold' }
  const opened: Options = {
    group: 'g',
    overflow: 'drop-oldest',
    maxLag: { records: 5 },
    order: 'none',
    retry: { attempts: 3, delayMs: 7 },
    deadLetter: 'dlq.g',
    strategy,
    graceMs: 9,
    from: new Date(5),
  }
  const fixed = readerSettings(opened)

  it.each<[string, Options]>([
    ['all', {}],
    ['nothing, and says the same', opened],
    ['the overflow that its bound belongs to', { maxLag: { records: 5 } }],
    ['part of the retry', { retry: { attempts: 3 } }],
    ['the retry that a default makes the same', { retry: { maxDelayMs: 1_000, jitter: 0.2 } }],
    ['what belongs to members', { concurrency: 5, ack: 'manual', weight: 2 }],
  ])('may omit %s', (_, options) => {
    expect(() => assertSame('g', fixed, { group: 'g', ...options })).not.toThrow()
  })

  it.each<[string, Options]>([
    ['overflow', { overflow: 'wait' }],
    ['maxLag.records', { maxLag: { records: 6 } }],
    ['maxLag.bytes', { maxLag: { bytes: 6 } }],
    ['order', { order: 'key' }],
    ['retry.attempts', { retry: { attempts: 4 } }],
    ['retry.delayMs', { retry: { attempts: 3, delayMs: 8 } }],
    ['retry.maxDelayMs', { retry: { maxDelayMs: 8 } }],
    ['retry.jitter', { retry: { jitter: 0 } }],
    ['deadLetter', { deadLetter: false }],
    ['assignment', { assignment: 'range' }],
    ['guarantee', { guarantee: 'at-most-once' }],
    ['graceMs', { graceMs: 10 }],
    ['from', { from: new Date(6) }],
    ['strategy by name', { strategy: 'weighted' }],
    ['strategy by object', { strategy: { select: strategy.select } }],
  ])('may not differ in %s', (_, options) => {
    expect(codeThrown(() => assertSame('g', fixed, { group: 'g', ...options }))).toBe('INCONSISTENT_GROUP')
  })

  it('of an at-most-once group has nothing to ack', () => {
    const atMostOnce = readerSettings({ group: 'g', guarantee: 'at-most-once' })
    expect(codeThrown(() => assertSame('g', atMostOnce, { group: 'g', ack: 'manual' }))).toBe(
      'INVALID_ARGUMENT',
    )
  })

  it('joins with a part of what the first one said', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t')
    await topic.subscribe(() => {}, opened)
    await topic.subscribe(() => {}, { group: 'g', maxLag: { records: 5 }, retry: { delayMs: 7 } })
    const other = { group: 'g', maxLag: { records: 4 } } as const
    expect(await codeOf(topic.subscribe(() => {}, other))).toBe('INCONSISTENT_GROUP')
    expect(broker.describeGroup('g').members).toHaveLength(2)
  })
})

describe("credit: 'manual'", () => {
  it('is counted in records where they come in batches', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t')
    const lengths: number[] = []
    const reader = await topic.subscribe((batch) => void lengths.push(batch.length), {
      id: 'a',
      credit: 'manual',
      batch: 3,
    })
    for (const value of upTo(10)) await topic.publish(value)
    reader.request(5)
    await world.settle()
    expect(lengths).toEqual([3, 2])
  })
})
