/**
 * How an ordinary user writes it: a memory broker, a topic with the default retention (65,536 records),
 * a reader with an id, which is at-least-once and makes publishers wait rather than lose anything.
 */
import { createBroker } from 'odradek/memory'
import { type Contender, type Session, turn } from '../race.ts'
import { Tally } from '../tally.ts'
import type { Payload } from './payload.ts'

/** Records published before the loop gets a turn, where somebody publishes in bursts. */
export const BURST = 1_024

/** `readers` of one topic, each with an id, and a producer that publishes in the manner of `produce`. */
function broadcast<T>(
  name: string,
  readers: number,
  payload: Payload<T>,
  produce: (topic: Topic<T>, payload: Payload<T>, count: number) => Promise<void>,
): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const broker = createBroker()
      const topic = await broker.createTopic<T>('orders')
      const tallies: Tally[] = []
      for (let i = 0; i < readers; i++) {
        const tally = new Tally()
        await topic.subscribe((d) => tally.add(payload.idOf(d.value as T)), { id: `reader-${i}` })
        tallies.push(tally)
      }
      return {
        tallies,
        run: (count) => produce(topic, payload, count),
        close: async () => {
          await broker.close()
        },
      }
    },
  }
}

/** The part of a topic that producers use. */
interface Topic<T> {
  tryPublish(value: T): unknown
  publish(value: T): Promise<unknown>
}

/** `tryPublish` until there is no room, then wait for some. */
export function odradek<T>(readers: number, payload: Payload<T>): Contender {
  return broadcast('odradek', readers, payload, async (topic, { make }, count) => {
    for (let i = 0; i < count; i++) {
      const value = make(i)
      if (topic.tryPublish(value) === undefined) await topic.publish(value)
    }
  })
}

/** `tryPublish` in bursts, with a turn of the event loop between two. */
export function odradekBursts<T>(readers: number, payload: Payload<T>): Contender {
  return broadcast('odradek, bursts', readers, payload, async (topic, { make }, count) => {
    for (let i = 0; i < count; ) {
      for (const end = Math.min(count, i + BURST); i < end; i++) {
        const value = make(i)
        if (topic.tryPublish(value) === undefined) await topic.publish(value)
      }
      await turn()
    }
  })
}

/** `publish()` in bursts whose last promise is awaited. */
export function odradekPublish<T>(readers: number, payload: Payload<T>): Contender {
  return broadcast('odradek, publish()', readers, payload, async (topic, { make }, count) => {
    let last: Promise<unknown> = Promise.resolve()
    for (let i = 0; i < count; ) {
      for (const end = Math.min(count, i + BURST); i < end; i++) last = topic.publish(make(i))
      await last
    }
  })
}

/** `await publish()`, record by record. */
export function odradekAwait<T>(readers: number, payload: Payload<T>): Contender {
  return broadcast('odradek, await publish()', readers, payload, async (topic, { make }, count) => {
    for (let i = 0; i < count; i++) await topic.publish(make(i))
  })
}
