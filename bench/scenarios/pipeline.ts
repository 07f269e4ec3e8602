/** Three stages: each handler passes the record on to the next topic, the last one counts. */
import { EventEmitter } from 'node:events'
import fastq from 'fastq'
import mqemitter, { type Message } from 'mqemitter'
import { createBroker } from 'odradek/memory'
import { asapScheduler, observeOn, Subject } from 'rxjs'
import { FASTQ_BURST } from '../contenders/queues.ts'
import { RXJS_BURST } from '../contenders/subjects.ts'
import { type Contender, race, type Session } from '../race.ts'
import { type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

const odradek: Contender = {
  name: 'odradek',
  async open(): Promise<Session> {
    const broker = createBroker()
    const tally = new Tally()
    const raw = await broker.createTopic<number>('raw')
    const clean = await broker.createTopic<number>('clean')
    const rich = await broker.createTopic<number>('rich')
    await raw.subscribe((d) => d.publish('clean', d.value), { id: 'clean' })
    await clean.subscribe((d) => d.publish('rich', d.value), { id: 'enrich' })
    await rich.subscribe((d) => tally.add(d.value), { id: 'count' })
    return {
      tallies: [tally],
      async run(count) {
        for (let i = 0; i < count; i++) {
          if (raw.tryPublish(i) === undefined) await raw.publish(i)
        }
      },
      close: async () => {
        await broker.close()
      },
    }
  },
}

/** The limit: three nested synchronous calls. */
const eventEmitter: Contender = {
  name: 'EventEmitter',
  open(): Session {
    const emitter = new EventEmitter()
    const tally = new Tally()
    emitter.on('raw', (value: number) => emitter.emit('clean', value))
    emitter.on('clean', (value: number) => emitter.emit('rich', value))
    emitter.on('rich', (value: number) => tally.add(value))
    return {
      tallies: [tally],
      run(count) {
        for (let i = 0; i < count; i++) emitter.emit('raw', i)
      },
    }
  },
}

const mqEmitter: Contender = {
  name: 'mqemitter',
  open(): Session {
    const emitter = mqemitter()
    const tally = new Tally()
    const passTo = (topic: string) => (message: Message, done: () => void) => {
      emitter.emit({ topic, value: message.value }, done)
    }
    emitter.on('raw', passTo('clean'))
    emitter.on('clean', passTo('rich'))
    emitter.on('rich', (message: Message, done: () => void) => {
      tally.add(message.value as number)
      done()
    })
    return {
      tallies: [tally],
      run(count) {
        for (let i = 0; i < count; i++) emitter.emit({ topic: 'raw', value: i })
      },
    }
  },
}

const rxjsAsap: Contender = {
  name: 'rxjs asap',
  open(): Session {
    const raw = new Subject<number>()
    const clean = new Subject<number>()
    const rich = new Subject<number>()
    const tally = new Tally()
    raw.pipe(observeOn(asapScheduler)).subscribe(clean)
    clean.pipe(observeOn(asapScheduler)).subscribe(rich)
    rich.pipe(observeOn(asapScheduler)).subscribe((value) => tally.add(value))
    return {
      tallies: [tally],
      async run(count) {
        for (let i = 0; i < count; ) {
          for (const end = Math.min(count, i + RXJS_BURST); i < end; i++) raw.next(i)
          while (tally.count < i) await null
        }
      },
    }
  },
}

/** A stage is done with a record when the next one has it. */
const fastqPromises: Contender = {
  name: 'fastq promises',
  open(): Session {
    const tally = new Tally()
    const rich = fastq.promise<null, number, void>(async (value: number) => tally.add(value), 1)
    const clean = fastq.promise<null, number, void>(async (value: number) => void rich.push(value), 1)
    const raw = fastq.promise<null, number, void>(async (value: number) => void clean.push(value), 1)
    return {
      tallies: [tally],
      async run(count) {
        for (let i = 0; i < count; ) {
          for (const end = Math.min(count, i + FASTQ_BURST); i < end; i++) void raw.push(i)
          await raw.drained()
        }
      },
    }
  },
}

export const pipeline: Scenario = {
  name: 'pipeline',
  title: 'Three topics in a row, each handler publishes to the next, numbers',
  moved: 'records through',
  rows: [
    speed('odradek', 'mqemitter'),
    speed('odradek', 'rxjs asap'),
    speed('odradek', 'fastq promises'),
    speed('odradek', 'EventEmitter'),
  ],
  sample: race({
    expectation: ordered((i) => i),
    contenders: [odradek, mqEmitter, rxjsAsap, fastqPromises, eventEmitter],
  }),
}
