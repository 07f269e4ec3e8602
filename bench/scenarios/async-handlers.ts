/**
 * Handlers that are `async` functions. Two kinds of contenders for the ones that are resolved already: the
 * records are published in the run, or they lie in the log and are replayed, which is what a loop over an array
 * does. For handlers that wait, the bare pool of 256 shows what concurrency can bring at all.
 */
import { createBroker } from 'odradek/memory'
import { RETAINED } from '../contenders/emitters.ts'
import { type Contender, race, type Session, turn } from '../race.ts'
import { atLeast, type Scenario, speed } from '../scenario.ts'
import { anyOrder, Tally } from '../tally.ts'

const values = Array.from({ length: RETAINED }, (_, i) => i)
const everyValue = anyOrder((i) => i & (RETAINED - 1))

type Handle = (tally: Tally, value: number) => Promise<void>

const resolved: Handle = async (tally, value) => tally.addAnyOrder(value)

const waiting: Handle = async (tally, value) => {
  await turn()
  tally.addAnyOrder(value)
}

function bareLoop(handle: Handle): Contender {
  return {
    name: 'await loop',
    open(): Session {
      const tally = new Tally()
      return {
        tallies: [tally],
        async run(count) {
          for (let pass = 0; pass < count; pass += RETAINED) {
            for (const value of pass + RETAINED <= count ? values : values.slice(0, count - pass)) {
              await handle(tally, value)
            }
          }
        },
      }
    },
  }
}

/** 256 loops over one iterator: concurrency with nothing around it. */
function barePool(handle: Handle): Contender {
  return {
    name: '256 await loops',
    open(): Session {
      const tally = new Tally()
      return {
        tallies: [tally],
        async run(count) {
          let next = 0
          const worker = async (): Promise<void> => {
            while (next < count) await handle(tally, next++ & (RETAINED - 1))
          }
          await Promise.all(Array.from({ length: 256 }, worker))
        },
      }
    },
  }
}

function published(name: string, concurrency: number, handle: Handle): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const broker = createBroker()
      const topic = await broker.createTopic<number>('orders')
      const tally = new Tally()
      await topic.subscribe((d) => handle(tally, d.value), { id: 'reader', concurrency })
      return {
        tallies: [tally],
        async run(count) {
          for (let i = 0; i < count; i++) {
            const value = i & (RETAINED - 1)
            if (topic.tryPublish(value) === undefined) await topic.publish(value)
          }
        },
        close: async () => {
          await broker.close()
        },
      }
    },
  }
}

function replayed(name: string, concurrency: number, handle: Handle): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const broker = createBroker()
      const topic = await broker.createTopic<number>('orders')
      for (const value of values) await topic.publish(value)
      const tally = new Tally()
      const pass = new Tally()
      pass.start(RETAINED)
      await topic.subscribe(
        (d) => {
          pass.addAnyOrder(d.value)
          return handle(tally, d.value)
        },
        { id: 'reader', concurrency },
      )
      return {
        tallies: [tally],
        async run(count) {
          for (let done = 0; done < count; done += RETAINED) {
            pass.start(RETAINED)
            await broker.resetOffset('orders', 'reader', 'earliest')
            await pass.done
            await broker.idle()
          }
        },
        close: async () => {
          await broker.close()
        },
      }
    },
  }
}

export const asyncResolved: Scenario = {
  name: 'async-resolved',
  title: 'One reader whose `async` handler is resolved already, numbers',
  moved: 'records',
  rows: [
    speed('odradek, concurrency 1', 'await loop', atLeast(0.8)),
    speed('odradek, concurrency 256', 'await loop', atLeast(0.5)),
    speed('odradek, concurrency 1, replayed', 'await loop'),
    speed('odradek, concurrency 256, replayed', 'await loop'),
  ],
  sample: race({
    unit: RETAINED,
    expectation: everyValue,
    contenders: [
      published('odradek, concurrency 1', 1, resolved),
      published('odradek, concurrency 256', 256, resolved),
      replayed('odradek, concurrency 1, replayed', 1, resolved),
      replayed('odradek, concurrency 256, replayed', 256, resolved),
      bareLoop(resolved),
    ],
  }),
}

export const asyncWaiting: Scenario = {
  name: 'async-waiting',
  title: 'One reader whose `async` handler waits for `setImmediate`, numbers',
  moved: 'records',
  rows: [
    speed('odradek, concurrency 256', 'await loop', atLeast(50)),
    speed('odradek, concurrency 256', '256 await loops'),
    speed('256 await loops', 'await loop'),
  ],
  sample: race({
    expectation: everyValue,
    contenders: [published('odradek, concurrency 256', 256, waiting), bareLoop(waiting), barePool(waiting)],
  }),
}
