/** One record to 10,000 subscriptions, one record at a time: what a wake costs per reader. */
import { createBroker } from 'odradek/memory'
import { type Contender, race, type Session } from '../race.ts'
import { atMost, type Scenario, time } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

const SUBSCRIPTIONS = 10_000

function odradek(name: string, idOf: (i: number) => { readonly id?: string }): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const broker = createBroker()
      const topic = await broker.createTopic<number>('news')
      const tally = new Tally()
      const each = new Tally()
      for (let i = 0; i < SUBSCRIPTIONS; i++) {
        await topic.subscribe((d) => {
          tally.add(d.value)
          each.add(d.value)
        }, idOf(i))
      }
      return {
        tallies: [tally],
        async run(count) {
          for (let i = 0; i < count; i++) {
            each.start(SUBSCRIPTIONS)
            await topic.publish(i)
            await each.done
          }
        },
        close: async () => {
          await broker.close()
        },
      }
    },
  }
}

const functions: Contender = {
  name: '10,000 functions',
  open(): Session {
    const tally = new Tally()
    const each = new Tally()
    const handlers = Array.from({ length: SUBSCRIPTIONS }, () => (value: number): void => {
      tally.add(value)
      each.add(value)
    })
    return {
      tallies: [tally],
      async run(count) {
        for (let i = 0; i < count; i++) {
          each.start(SUBSCRIPTIONS)
          for (const handler of handlers) handler(i)
          await each.done
        }
      },
    }
  },
}

export const tenThousand: Scenario = {
  name: 'ten-thousand',
  title: '10,000 subscriptions on one topic, one record at a time (time: less is better)',
  moved: 'records',
  rows: [
    time('odradek', '10,000 functions', atMost(10)),
    time('odradek, anonymous readers', '10,000 functions', atMost(10)),
  ],
  sample: race({
    deliveries: (count) => count * SUBSCRIPTIONS,
    expectation: ordered((i) => Math.floor(i / SUBSCRIPTIONS)),
    contenders: [
      odradek('odradek', (i) => ({ id: `reader-${i}` })),
      odradek('odradek, anonymous readers', () => ({})),
      functions,
    ],
  }),
}
