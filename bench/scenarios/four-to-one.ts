/** Four producers that take turns on the event loop, one reader; each producer's order is checked. */
import { EventEmitter } from 'node:events'
import fastq from 'fastq'
import mqemitter, { type Message } from 'mqemitter'
import { createBroker } from 'odradek/memory'
import { type Contender, race, type Session, turn } from '../race.ts'
import { atLeast, type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

const PRODUCERS = 4
/** Records a producer publishes before the others get their turn. */
const SHARE = 256

/** Producer p publishes p, p + 4, p + 8, …, so that the value says whose it is. */
async function produce(producer: number, count: number, publish: (value: number) => void): Promise<void> {
  for (let value = producer; value < count; ) {
    for (const end = value + SHARE * PRODUCERS; value < Math.min(end, count); value += PRODUCERS) {
      publish(value)
    }
    await turn()
  }
}

function contender(
  name: string,
  open: (handle: (value: number) => void) => Promise<(value: number) => void>,
): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const tallies = Array.from({ length: PRODUCERS }, () => new Tally())
      const publish = await open((value) => tallies[value % PRODUCERS]?.add(value))
      return {
        tallies,
        async run(count) {
          await Promise.all(tallies.map((_, producer) => produce(producer, count, publish)))
        },
      }
    },
  }
}

async function odradek(handle: (value: number) => void): Promise<(value: number) => void> {
  const topic = await createBroker().createTopic<number>('orders')
  await topic.subscribe((d) => handle(d.value), { id: 'reader' })
  return (value) => {
    if (topic.tryPublish(value) === undefined) throw new Error('a turn was not enough to make room')
  }
}

async function eventEmitter(handle: (value: number) => void): Promise<(value: number) => void> {
  const emitter = new EventEmitter()
  emitter.on('orders', (value: number) => handle(value))
  return (value) => emitter.emit('orders', value)
}

async function mqEmitter(handle: (value: number) => void): Promise<(value: number) => void> {
  const emitter = mqemitter()
  emitter.on('orders', (message: Message, done: () => void) => {
    handle(message.value as number)
    done()
  })
  return (value) => emitter.emit({ topic: 'orders', value })
}

async function fastqCallbacks(handle: (value: number) => void): Promise<(value: number) => void> {
  const queue = fastq<null, number>((value: number, done: fastq.done) => {
    handle(value)
    done(null)
  }, 1)
  return (value) => queue.push(value)
}

export const fourToOne: Scenario = {
  name: 'four-to-one',
  title: 'Four producers that take turns on the event loop, one reader, numbers',
  moved: 'records',
  rows: [
    speed('odradek', 'mqemitter', atLeast(4)),
    speed('odradek', 'EventEmitter', atLeast(0.35)),
    speed('odradek', 'fastq callbacks'),
  ],
  sample: race({
    unit: PRODUCERS,
    deliveries: (count) => count / PRODUCERS,
    expectation: ordered((i, producer) => i * PRODUCERS + producer),
    contenders: [
      contender('odradek', odradek),
      contender('mqemitter', mqEmitter),
      contender('EventEmitter', eventEmitter),
      contender('fastq callbacks', fastqCallbacks),
    ],
  }),
}
