import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import { createBroker } from '../../src/memory.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { BusyClock } from '../model/busy-clock.ts'

/** A topic with `count` broadcast readers that are at its end, and all that they handled, as `reader:offset`. */
async function atTheEnd(count: number, handlerOf?: (reader: number) => (d: Delivery) => unknown) {
  const clock = new BusyClock()
  const broker = createBroker({ clock })
  const topic = await broker.createTopic('t')
  const handled: string[] = []
  const readers: Subscription[] = []
  for (let i = 0; i < count; i++) {
    const handle = handlerOf?.(i)
    const reader = await topic.subscribe(
      (d) => {
        handled.push(`${i}:${d.offset}`)
        return handle?.(d)
      },
      { id: `reader-${i}` },
    )
    readers.push(reader)
  }
  await clock.rest()
  return { clock, broker, topic, handled, readers }
}

function each(count: number, offset: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i}:${offset}`)
}

describe('readers at the end of a partition', () => {
  it('get what comes in the order in which they came, again and again', async () => {
    const { clock, topic, handled } = await atTheEnd(50)
    for (let offset = 0; offset < 3; offset++) {
      await topic.publish(offset)
      await clock.rest()
    }
    expect(handled).toEqual([...each(50, 0), ...each(50, 1), ...each(50, 2)])
  })

  it('are all asked once when handlers use up the time of a turn', async () => {
    const { clock, topic, handled } = await atTheEnd(300, () => () => clock.spend(2))
    topic.tryPublish('slow')
    await Promise.resolve()
    await Promise.resolve()
    expect(handled.length).toBeGreaterThan(0)
    expect(handled.length).toBeLessThan(300)
    await clock.rest()
    expect(handled).toEqual(each(300, 0))
  })

  it('get what is published while they are asked after what they are asked about', async () => {
    const { clock, topic, handled } = await atTheEnd(20, (reader) => (d) => {
      if (reader === 10 && d.offset === 0) topic.tryPublish('news')
    })
    await topic.publish('first')
    await clock.rest()
    const before = handled.indexOf('10:0')
    expect(handled.slice(0, before)).toEqual(each(10, 0))
    for (let i = 0; i < 20; i++) {
      expect(handled.filter((each) => each.startsWith(`${i}:`))).toEqual([`${i}:0`, `${i}:1`])
    }
  })

  it('do not miss anything when most of them leave, at rest or from within a handler', async () => {
    const { clock, topic, handled, readers } = await atTheEnd(100, (reader) => (d) => {
      if (reader === 40 && d.offset === 1) for (const each of readers.slice(50, 90)) void each.close()
    })
    for (const reader of readers.slice(1, 40)) await reader.close()
    await topic.publish('first')
    await clock.rest()
    const first = [0, ...Array.from({ length: 60 }, (_, i) => 40 + i)]
    expect(handled).toEqual(first.map((reader) => `${reader}:0`))
    handled.length = 0
    await topic.publish('second')
    await clock.rest()
    const second = first.filter((reader) => reader < 50 || reader >= 90)
    expect(handled).toEqual(second.map((reader) => `${reader}:1`))
  })

  it('get everything once where some are asynchronous, and keep losing and taking a place', async () => {
    const { clock, topic, handled } = await atTheEnd(40, (reader) =>
      reader % 3 === 0 ? async () => undefined : () => undefined,
    )
    for (let offset = 0; offset < 50; offset++) {
      topic.tryPublish(offset)
      if (offset % 7 === 0) await clock.rest()
    }
    await clock.rest()
    for (let i = 0; i < 40; i++) {
      const own = handled.filter((each) => each.startsWith(`${i}:`))
      expect(own).toEqual(Array.from({ length: 50 }, (_, offset) => `${i}:${offset}`))
    }
  })
})
