/** What topics are to a face: created with what it stores beside them, found by id, cleaned otherwise. */
import { describe, expect, it } from 'vitest'
import { FACE_PREFIX } from '../../src/core/topics.ts'
import type { MetaChange } from '../../src/log/contract.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { Machine } from '../support/durable.ts'
import { changedEngine } from '../support/engines.ts'
import { engineOfSuite } from '../support/suite.ts'
import { codeOf, codeThrown, World, watch } from '../support/world.ts'

const ENDLESS = Number.POSITIVE_INFINITY

function besides(text: string) {
  return (topicId: string): MetaChange[] => [[FACE_PREFIX + topicId, text]]
}

describe('a topic for a face', () => {
  it('is created once, with what stands beside it, whatever the settings of the others that ask', async () => {
    const { broker } = new World()
    const { topics, engine } = broker.parts
    const creations = ['a', 'b'].map((text) => topics.createNew('t', {}, besides(text)))
    const [first, second] = creations.map((creation) => codeOf(creation.then(() => 'created')))
    expect(await first).toContain('created')
    expect(await second).toBe('TOPIC_EXISTS')
    const { id } = topics.require('t')
    expect(engine.meta.get(FACE_PREFIX + id)).toBe('a')
    expect(await codeOf(topics.createNew('t', {}, besides('c')))).toBe('TOPIC_EXISTS')
    expect(engine.meta.get(FACE_PREFIX + id)).toBe('a')
  })

  it('is created by the next one who asks where the first attempt failed', async () => {
    const clock = new ManualClock()
    const engine = engineOfSuite(clock)
    let attempts = 0
    const failing = changedEngine(engine, {
      openLog: (spec) => (attempts++ === 0 ? Promise.reject(new Error('no')) : engine.openLog(spec)),
    })
    const { topics } = new World({}, failing, clock).broker.parts
    const outcomes = await Promise.allSettled(
      ['a', 'b', 'c'].map((text) => topics.createNew('t', {}, besides(text))),
    )
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    expect(failing.meta.get(FACE_PREFIX + topics.require('t').id)).toBe('b')
  })

  it('is found by its id until it is deleted, and what stood beside it goes with it', async () => {
    const { broker } = new World()
    const { topics, engine } = broker.parts
    const topic = await topics.createNew('t', {}, besides('a'))
    expect(topics.byId(topic.id)).toBe(topic)
    expect(topics.byId('t')).toBeUndefined()
    await broker.deleteTopic('t')
    expect(topics.byId(topic.id)).toBeUndefined()
    expect([...engine.meta.scan(FACE_PREFIX)]).toEqual([])
  })

  it('tells whether a name is free, also before anything is done', async () => {
    const { broker } = new World()
    const { topics } = broker.parts
    await broker.createTopic('a.b')
    expect(codeThrown(() => topics.assertFree('a.b'))).toBe('TOPIC_EXISTS')
    expect(codeThrown(() => topics.assertFree('a_b'))).toBe('INVALID_TOPIC')
    expect(codeThrown(() => topics.assertFree('a b'))).toBe('INVALID_TOPIC')
    expect(codeThrown(() => topics.assertFree('free'))).toBe('returned undefined')
  })

  it('is there as it was, with what stands beside it, after a crash', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    const { topics } = first.broker.parts
    const { id } = await topics.createNew('t', {}, besides('a'))
    const cleaning = {
      retention: { records: 5, bytes: 50_000, ageMs: ENDLESS },
      cleanup: 'delete',
      deleteRetentionMs: 7,
    } as const
    await topics.reconfigure('t', () => ({ cleaning, besides: besides('b')(id) }))
    expect(first.broker.describe('t').retention).toEqual(cleaning.retention)
    first.crash()
    const second = await machine.boot()
    const topic = second.broker.parts.topics.byId(id)
    expect(topic?.settings).toMatchObject(cleaning)
    expect(second.engine.meta.get(FACE_PREFIX + id)).toBe('b')
  })

  it('is only checked where nothing stands beside the change', async () => {
    const { broker } = new World()
    const { topics } = broker.parts
    await broker.createTopic('t')
    const { settings } = topics.require('t')
    const cleaning = { ...settings, retention: { ...settings.retention, records: 5 } }
    const { retention, cleanup, deleteRetentionMs } = cleaning
    const checked = { retention, cleanup, deleteRetentionMs }
    await topics.reconfigure('t', () => ({ cleaning: checked, besides: null }))
    expect(topics.require('t').settings).toEqual(settings)
    const bad = { ...checked, deleteRetentionMs: -1 }
    expect(await codeOf(topics.reconfigure('t', () => ({ cleaning: bad, besides: [] })))).toBe(
      'INVALID_ARGUMENT',
    )
    expect(await codeOf(topics.reconfigure('x', () => ({ cleaning: checked, besides: [] })))).toBe(
      'UNKNOWN_TOPIC',
    )
  })

  it('opens its logs anew for the change, and leaves none behind where it is deleted meanwhile', async () => {
    const clock = new ManualClock()
    const engine = engineOfSuite(clock)
    let open = (): void => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const deleted: string[] = []
    let slow = false
    const held = changedEngine(engine, {
      openLog: (spec) => (slow ? gate.then(() => engine.openLog(spec)) : engine.openLog(spec)),
      deleteLog: (topicId, partition) => {
        deleted.push(`${topicId}/${partition}`)
        return engine.deleteLog(topicId, partition)
      },
    })
    const { broker } = new World({}, held, clock)
    const { topics } = broker.parts
    await broker.createTopic('t', { partitions: 2 })
    const { id, settings } = topics.require('t')
    const { retention, cleanup } = settings
    slow = true
    const changing = topics.reconfigure('t', () => ({
      cleaning: { retention, cleanup, deleteRetentionMs: 7 },
      besides: [],
    }))
    const watched = watch(changing)
    await clock.settle()
    expect(watched.state).toBe('waiting')
    await broker.deleteTopic('t')
    open()
    expect(await codeOf(changing)).toBe('UNKNOWN_TOPIC')
    // Once by the deletion, once for the log that the change had opened behind it.
    expect(deleted.sort()).toEqual([`${id}/0`, `${id}/0`, `${id}/1`, `${id}/1`])
  })
})
