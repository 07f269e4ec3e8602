import { describe, expect, it, vi } from 'vitest'
import { createBroker } from '../../src/memory.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { Machine } from '../support/durable.ts'
import { codeThrown, Hands, upTo, World } from '../support/world.ts'

describe('lifecycle events', () => {
  it('come in the order they happened, after the code that caused them, never inside it', async () => {
    const world = new World()
    const { broker } = world
    const heard: string[] = []
    let busy = false
    const hear = (what: string): void => {
      expect(busy).toBe(false)
      heard.push(what)
    }
    broker.on('topicCreated', ({ topic }) => hear(`created ${topic}`))
    broker.on('topicDeleted', ({ topic }) => hear(`deleted ${topic}`))
    broker.on('dropped', ({ count }) => hear(`dropped ${count}`))
    const topic = await broker.createTopic('a', { retention: { records: 2 } })
    await topic.subscribe(new Hands().take, { ack: 'manual' })
    await topic.publish(0)
    await world.settle()
    busy = true
    for (const value of upTo(5)) topic.tryPublish(value)
    busy = false
    await world.settle()
    await broker.createTopic('b')
    await broker.deleteTopic('b')
    await world.settle()
    expect(heard).toEqual(['created a', 'dropped 3', 'created b', 'deleted b'])
  })

  it('can be heard once, until told not to, and by several', async () => {
    const { broker, settle } = new World()
    const heard: string[] = []
    const first = (event: { topic: string }): void => void heard.push(`first ${event.topic}`)
    broker.on('topicCreated', first)
    const stop = broker.on('topicCreated', ({ topic }) => void heard.push(`second ${topic}`))
    broker.once('topicCreated', ({ topic }) => void heard.push(`once ${topic}`))
    await broker.createTopic('a')
    await settle()
    stop()
    await broker.createTopic('b')
    await settle()
    broker.off('topicCreated', first)
    await broker.createTopic('c')
    await settle()
    expect(heard).toEqual(['first a', 'second a', 'once a', 'first b'])
  })

  it('survive a listener that throws or rejects, which is logged; the others hear them all the same', async () => {
    const { broker, settle, logged } = new World()
    let heard = 0
    broker.on('topicCreated', () => {
      throw new Error('at once')
    })
    broker.on('topicCreated', () => Promise.reject(new Error('later')))
    broker.on('topicCreated', () => void heard++)
    await broker.createTopic('a')
    await broker.createTopic('b')
    await settle()
    expect(heard).toBe(2)
    const lines = logged.filter(({ level }) => level === 'error').map(({ message }) => message)
    expect(lines.sort()).toEqual([
      'a listener of "topicCreated" failed: at once',
      'a listener of "topicCreated" failed: at once',
      'a listener of "topicCreated" failed: later',
      'a listener of "topicCreated" failed: later',
    ])
  })

  it('reach the observer before the listeners, and survive it when it throws', async () => {
    const clock = new ManualClock()
    const heard: string[] = []
    const lines: string[] = []
    const log = (_: object, message: string): void => void lines.push(message)
    const broker = createBroker(
      { clock, logger: { debug: () => {}, info: () => {}, warn: log, error: log } },
      {
        observe: (name) => {
          heard.push(`observed ${name}`)
          throw new Error('observer')
        },
      },
    )
    broker.on('topicCreated', ({ topic }) => void heard.push(topic))
    await broker.createTopic('a')
    await broker.createTopic('b')
    await clock.settle()
    expect(heard).toEqual(['observed topicCreated', 'a', 'observed topicCreated', 'b'])
    expect(lines).toEqual([
      'the observer of "topicCreated" failed: observer',
      'the observer of "topicCreated" failed: observer',
    ])
  })

  it('are known by name: a listener to another one would wait for ever', async () => {
    const { broker } = new World()
    const names =
      'deadLetter, dropped, pressure, drain, stalled, rebalance, error, topicCreated, topicDeleted'
    const message = `there is no event "deadletter"; there are ${names}`
    expect(() => broker.on('deadletter' as 'deadLetter', () => {})).toThrow(message)
    expect(codeThrown(() => broker.once('toString' as 'drain', () => {}))).toBe('INVALID_ARGUMENT')
    expect(codeThrown(() => broker.on('drain', undefined as never))).toBe('INVALID_ARGUMENT')
  })

  it('may be raised by listeners, and by what they do', async () => {
    const { broker, settle, raised } = new World()
    broker.on('topicCreated', ({ topic }) => topic.length < 4 && broker.createTopic(`${topic}x`))
    await broker.createTopic('a')
    await settle()
    expect(raised('topicCreated').map(({ topic }) => topic)).toEqual(['a', 'ax', 'axx', 'axxx'])
  })

  it('that happened before the broker closed are heard', async () => {
    const { broker } = new World()
    const heard: string[] = []
    broker.on('topicCreated', ({ topic }) => void heard.push(topic))
    const created = broker.createTopic('a')
    await created
    await broker.close()
    expect(heard).toEqual(['a'])
  })

  it('that are raised after the broker closed are heard, too', async () => {
    const machine = new Machine()
    const { broker, raised, settle } = await machine.boot()
    await broker.createTopic('a')
    let stored = (): void => {}
    machine.beforePut = () =>
      new Promise<void>((resolve) => {
        stored = resolve
      })
    const deleted = broker.deleteTopic('a')
    await settle()
    await broker.close()
    expect(raised('topicDeleted')).toEqual([])
    stored()
    await deleted
    await settle()
    expect(raised('topicDeleted')).toMatchObject([{ topic: 'a' }])
  })
})

describe('"error"', () => {
  const failing = {
    select: () => {
      throw 'no reason'
    },
  }

  it('without a listener is logged, never thrown', async () => {
    const { broker, settle, logged } = new World()
    const topic = await broker.createTopic('t')
    const group = { group: 'g', strategy: failing } as const
    for (const _ of upTo(2)) await topic.subscribe(() => {}, group)
    await topic.publish(1)
    await settle()
    const lines = logged.filter(({ level }) => level === 'error')
    expect(lines).toMatchObject([
      { message: 'delivery strategy of "g": no reason', details: { error: { message: 'no reason' } } },
    ])
  })

  it('with a listener is heard, and not logged', async () => {
    const { broker, settle, logged } = new World()
    const heard: unknown[] = []
    broker.on('error', (event) => void heard.push(event))
    const topic = await broker.createTopic('t')
    const strangers = { select: () => ({ id: 'stranger' }) as never }
    for (const _ of upTo(2)) await topic.subscribe(() => {}, { group: 'g', strategy: strangers })
    await topic.publish(1)
    await settle()
    expect(heard).toMatchObject([
      { context: 'delivery strategy of "g"', error: { code: 'INVALID_ARGUMENT' } },
    ])
    expect((heard[0] as { error: Error }).error).toBeInstanceOf(OdradekError)
    expect(logged.filter(({ level }) => level === 'error')).toEqual([])
  })
})

describe('a broker without a logger', () => {
  it('writes warnings and errors to the console, and nothing else', async () => {
    const lines: unknown[][] = []
    for (const level of ['debug', 'info', 'log', 'warn', 'error'] as const) {
      vi.spyOn(console, level).mockImplementation((...args) => void lines.push([level, ...args]))
    }
    const clock = new ManualClock()
    const broker = createBroker({ clock })
    const topic = await broker.createTopic('t', { retention: { records: 1 } })
    await topic.subscribe(new Hands().take, { id: 'a', overflow: 'drop-oldest', ack: 'manual' })
    broker.on('topicDeleted', () => {
      throw new Error('bad listener')
    })
    for (const value of upTo(3)) await topic.publish(value)
    await clock.settle()
    await topic.publish(4)
    await clock.settle()
    await broker.deleteTopic('t')
    await clock.settle()
    expect(lines).toMatchObject([
      ['warn', 'records dropped: one line an episode, counters and events have them all', { topic: 't' }],
      ['error', 'a listener of "topicDeleted" failed: bad listener', { error: { message: 'bad listener' } }],
    ])
  })
})
