/** What the log says instead of records: markers, a tail that is gone. */
import { describe, expect, it } from 'vitest'
import type { Marks } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { markerOf, producerOf, wireBatchOf } from '../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { changedLog, withLogs } from '../support/engines.ts'
import { World } from '../support/world.ts'

describe('a reader', () => {
  it('passes transaction markers and aborted records, and is then at the end', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('orders')
    const seen: unknown[] = []
    const sub = await topic.subscribe((d) => void seen.push([d.offset, d.value]), { id: 'reader' })
    const log = world.logs.get('orders/0')
    const transactional = (sequence: number) => producerOf(7, sequence, { transactional: true })
    log?.tryAppend(wireBatchOf([{ value: 'kept' }], transactional(0)))
    log?.tryAppend(markerOf(transactional(1), true))
    log?.tryAppend(wireBatchOf([{ value: 'aborted' }], transactional(1)))
    log?.tryAppend(markerOf(transactional(2), false))
    // The broker does not know that these are on their way to a disk.
    await world.settle()
    await world.broker.idle()
    expect(seen).toEqual([[0, 'kept']])
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 4, next: 4, lag: 0 })
    await topic.publish('after')
    await world.broker.idle()
    expect(seen.at(-1)).toEqual([4, 'after'])
  })

  it('that is closed, or whose topic goes, while the log pages in is told nothing', async () => {
    for (const end of ['close', 'delete'] as const) {
      const memory = memoryEngine({ clock: new ManualClock() })
      let fail: (error: unknown) => void = () => {}
      const load = (): Promise<never> =>
        new Promise((_, reject) => {
          fail = reject
        })
      const changes = { load, peek: () => 'miss' as const }
      const world = new World(
        {},
        withLogs(memory, async (spec) => changedLog(await memory.openLog(spec), changes)),
      )
      const topic = await world.broker.createTopic('orders')
      await topic.subscribe(() => undefined, { id: 'reader' })
      await topic.publish('a')
      await world.settle()
      if (end === 'close') await world.broker.close({ drainMs: 0 })
      else await world.broker.deleteTopic('orders')
      fail(new Error('the log is closed'))
      await world.settle()
      expect(world.raised('error')).toEqual([])
      if (end === 'delete') await world.broker.idle()
    }
  })

  it('goes back to the end of a log that lost its tail', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    let end = Number.POSITIVE_INFINITY
    let wake: () => void = () => {}
    const engine = withLogs(memory, async (spec) => {
      const log = await memory.openLog(spec)
      const marks = new Proxy(log.marks, {
        get: (target, name: keyof Marks) => Math.min(target[name], name === 'epoch' ? Infinity : end),
      })
      return changedLog(log, {
        marks,
        peek: (from, ...rest) => (from > end ? 'range' : from === end ? 'end' : log.peek(from, ...rest)),
        onAdvance: (hear) => {
          wake = hear
          return log.onAdvance(hear)
        },
      })
    })
    const world = new World({}, engine)
    const topic = await world.broker.createTopic<string>('orders')
    const seen: unknown[] = []
    const sub = await topic.subscribe((d) => void seen.push(d.value), { id: 'reader' })
    for (const value of ['a', 'b', 'c', 'd']) await topic.publish(value)
    await world.broker.idle()
    end = 2
    wake()
    await world.settle()
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 2, next: 2 })
    expect(seen).toEqual(['a', 'b', 'c', 'd'])
  })
})
