/** What comes back of topics when a broker opens what another one left. */
import { describe, expect, it } from 'vitest'
import type { TopicOptions } from '../../src/model/options.ts'
import { wireBatchOf } from '../../src/testing/conformance/kit.ts'
import { byteDisk } from '../support/disks.ts'
import { Machine } from '../support/durable.ts'
import { codeOf, Hands, upTo } from '../support/world.ts'

const INFINITE = Number.POSITIVE_INFINITY

describe('a topic, after a restart', () => {
  it.each([
    ['as it comes', {}],
    ['of several partitions', { partitions: 3 }],
    ['with limits', { retention: { records: 10, bytes: 10_000, ageMs: 60_000 } }],
    ['without limits by bytes', { retention: { records: 10, bytes: INFINITE, ageMs: INFINITE } }],
  ])('%s is there with its id, its records and its retention', async (_, options) => {
    const machine = new Machine()
    const first = await machine.boot()
    const topic = await first.broker.createTopic('t', options)
    for (const value of upTo(4)) await topic.publish(value, { partition: 0 })
    const before = topic.describe()
    first.crash()
    const second = await machine.boot()
    expect(second.broker.listTopics()).toEqual(['t'])
    expect(second.broker.describe('t')).toEqual(before)
    expect((await second.broker.read('t')).map(({ value }) => value)).toEqual(upTo(4))
    const again = await second.broker.createTopic('t', options)
    expect(again.id).toBe(topic.id)
    expect(await again.publish(4, { partition: 0 })).toEqual({ partition: 0, offset: 4 })
  })

  it('is as it was altered', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('t')
    await first.broker.alterTopic('t', { partitions: 2, retention: { records: 7 } })
    first.crash()
    const second = await machine.boot()
    expect(second.broker.describe('t')).toMatchObject({ retention: { records: 7 } })
    expect(second.broker.describe('t').partitions).toHaveLength(2)
    expect(await codeOf(second.broker.createTopic('t'))).toBe('TOPIC_EXISTS')
    const same = { partitions: 2, retention: { records: 7 } }
    expect(await codeOf(second.broker.createTopic('t', { ...same, partitions: 3 }))).toBe('TOPIC_EXISTS')
    expect((await second.broker.createTopic('t', same)).partitions).toBe(2)
  })

  it('gets from the next createTopic what cannot be stored, and holds later ones to that', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('t')
    first.crash()
    const { broker } = await machine.boot()
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value: unknown) => ({ value: `checked ${value}` }),
      },
    } as const
    const options = {
      schema,
      sizeOf: () => 1,
      dedupe: true,
      maxWaiting: { records: 1 },
      publishTimeoutMs: 5,
    } as const
    const topic = await broker.createTopic('t', options)
    expect(await topic.publish('a', { id: 'x' })).toEqual({ partition: 0, offset: 0 })
    expect(await topic.publish('a', { id: 'x' })).toMatchObject({ duplicate: true })
    expect((await broker.read('t'))[0]?.value).toBe('checked a')
    expect(await codeOf(broker.createTopic('t'))).toBe('TOPIC_EXISTS')
    expect((await broker.createTopic('t', options)).id).toBe(topic.id)
  })

  it.each<[string, TopicOptions]>([
    ['maxWaiting', { maxWaiting: { records: 3, bytes: 500 } }],
    ['maxWaiting without a bound by bytes', { maxWaiting: { records: 3, bytes: INFINITE } }],
    ['publishTimeoutMs', { publishTimeoutMs: 50 }],
    ['publishTimeoutMs without end', { publishTimeoutMs: INFINITE }],
    ['dedupe', { dedupe: { windowMs: 50, records: 7 } }],
    ['dedupe without end', { dedupe: { windowMs: INFINITE } }],
    ['deleteRetentionMs', { deleteRetentionMs: 0 }],
  ])('behaves as before, before anybody creates it again: %s', async (_, options) => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('t', options)
    const stored = machine.puts.at(-1)
    first.crash()
    const second = await machine.boot()
    // What it was made of again is what it is stored as again.
    await second.broker.alterTopic('t', {})
    expect(machine.puts.at(-1)).toEqual(stored)
    const puts = machine.puts.length
    await second.broker.createTopic('t', options)
    expect(machine.puts.length).toBe(puts)
    await second.broker.createTopic('t', options)
    expect(await codeOf(second.broker.createTopic('t', { maxWaiting: { records: 77 } }))).toBe('TOPIC_EXISTS')
  })

  it('gives up as soon, and lets as many wait, as it did', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    const options = { retention: { records: 1 }, maxWaiting: { records: 2 }, publishTimeoutMs: 50 }
    await first.broker.createTopic('t', options)
    await first.broker.publish('t', 0)
    first.crash()
    const { broker, clock } = await machine.boot()
    await broker.subscribe('t', () => {}, { id: 'slow', from: 'earliest', credit: 'manual' })
    const waiting = [codeOf(broker.publish('t', 1)), codeOf(broker.publish('t', 2))]
    expect(await codeOf(broker.publish('t', 3))).toBe('TOO_MANY_WAITING')
    await clock.advance(50)
    expect(await Promise.all(waiting)).toEqual(['TIMEOUT', 'TIMEOUT'])
  })

  it('takes on what it is asked for instead, and stores that', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('t', { publishTimeoutMs: 50 })
    first.crash()
    const second = await machine.boot()
    await second.broker.createTopic('t', { publishTimeoutMs: 70 })
    second.crash()
    const third = await machine.boot()
    const stored = machine.puts.at(-1)
    expect(stored?.[1]).toMatchObject({ publishTimeoutMs: 70 })
    await third.broker.createTopic('t', { publishTimeoutMs: 70 })
    expect(machine.puts.at(-1)).toBe(stored)
  })

  it('is refused another cleanup: its log goes by that', async () => {
    const machine = new Machine(byteDisk())
    const first = await machine.boot()
    await first.broker.createTopic('t', { cleanup: 'compact' })
    first.crash()
    const second = await machine.boot()
    expect(second.specs).toMatchObject([{ cleanup: 'compact', deleteRetentionMs: 86_400_000 }])
    expect(await codeOf(second.broker.publish('t', 1))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(second.broker.createTopic('t'))).toBe('TOPIC_EXISTS')
    const other = { cleanup: 'compact', deleteRetentionMs: 5 } as const
    expect(await codeOf(second.broker.createTopic('t', other))).toBe('TOPIC_EXISTS')
    await second.broker.createTopic('t', { cleanup: 'compact' })
  })

  it('that was stored by a version that knew less has the defaults of what is missing', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.engine.meta.put([
      [
        'topic/AAAAAAAAAAAAAAAAAAAAAA',
        {
          name: 't',
          partitions: 2,
          retention: { records: 10, bytes: null, ageMs: null },
          deadLetter: false,
        },
      ],
    ])
    first.crash()
    const { broker } = await machine.boot()
    expect(broker.describe('t')).toMatchObject({
      id: 'AAAAAAAAAAAAAAAAAAAAAA',
      retention: { records: 10, bytes: INFINITE, ageMs: INFINITE },
    })
    await broker.createTopic('t', { partitions: 2, retention: { records: 10, bytes: INFINITE } })
  })

  it('keeps records without a bound by number, where that is what it was given', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('t', { retention: { records: INFINITE, bytes: 10_000 } })
    expect(machine.puts.at(-1)?.[1]).toMatchObject({ retention: { records: null } })
    for (const value of upTo(20)) await first.broker.publish('t', value)
    first.crash()
    const { broker } = await machine.boot()
    expect(broker.describe('t').retention).toEqual({ records: INFINITE, bytes: 10_000, ageMs: INFINITE })
    expect(await broker.read('t')).toHaveLength(20)
  })

  it('reads what came as bytes by the codec that it got back', async () => {
    const machine = new Machine()
    const codec = {
      encode: (value: unknown) => ({ bytes: new TextEncoder().encode(`<${value}>`), contentType: null }),
      decode: (bytes: Uint8Array | null) => `decoded ${new TextDecoder().decode(bytes ?? undefined)}`,
    }
    const first = await machine.boot()
    await first.broker.createTopic('t', { codec })
    first.crash()
    const second = await machine.boot()
    await second.broker.createTopic('t', { codec })
    second.logs.get('t/0')?.tryAppend(wireBatchOf([{ value: new TextEncoder().encode('abc') }]))
    const hands = new Hands()
    await second.broker.subscribe('t', hands.take, { from: 'earliest', ack: 'manual' })
    await second.settle()
    expect(hands.values).toEqual(['decoded abc'])
  })

  it('still keeps others from its name, and from those that collide with it', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('a.b')
    first.crash()
    const { broker } = await machine.boot()
    expect(await codeOf(broker.createTopic('a_b'))).toBe('INVALID_TOPIC')
    await broker.deleteTopic('a.b')
    expect((await broker.createTopic('a_b')).name).toBe('a_b')
  })

  it('that was deleted is gone for good', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('t')
    await first.broker.deleteTopic('t')
    first.crash()
    const second = await machine.boot()
    expect(second.broker.listTopics()).toEqual([])
  })

  it('raises no event: it was created before', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('t')
    first.crash()
    const second = await machine.boot()
    await second.settle()
    expect(second.raised('topicCreated')).toEqual([])
  })
})
