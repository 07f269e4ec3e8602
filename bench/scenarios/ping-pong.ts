/**
 * Two topics whose handlers answer each other: one record under way, so that what counts is the way from a
 * publish to its handler. A synchronous emitter would recurse until the stack is full; there, as Node's
 * documentation advises, the answer is emitted in the next tick.
 */
import { EventEmitter } from 'node:events'
import Emittery from 'emittery'
import fastq from 'fastq'
import mqemitter, { type Message } from 'mqemitter'
import { createBroker } from 'odradek/memory'
import { asapScheduler, observeOn, Subject } from 'rxjs'
import { type Contender, race, type Session } from '../race.ts'
import { type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

/** One game: `count` round trips, counted where `pong` arrives. */
class Game {
  readonly tally: Tally = new Tally()
  count = 0

  /** The next serve, or −1 when the game is over. */
  next(value: number): number {
    this.tally.add(value)
    return value + 1 < this.count ? value + 1 : -1
  }
}

function contender(name: string, open: (game: Game) => (value: number) => unknown): Contender
function contender(name: string, open: (game: Game) => Promise<(value: number) => unknown>): Contender
function contender(name: string, open: (game: Game) => unknown): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const game = new Game()
      const serve = (await open(game)) as (value: number) => unknown
      return {
        tallies: [game.tally],
        async run(count) {
          game.count = count
          await serve(0)
        },
      }
    },
  }
}

/** The answer is published by the delivery, and its acceptance settles the record that caused it. */
async function odradek(game: Game): Promise<(value: number) => unknown> {
  const broker = createBroker()
  const ping = await broker.createTopic<number>('ping')
  const pong = await broker.createTopic<number>('pong')
  await ping.subscribe((d) => d.publish('pong', d.value), { id: 'right' })
  await pong.subscribe(
    (d) => {
      const next = game.next(d.value)
      return next < 0 ? undefined : d.publish('ping', next)
    },
    { id: 'left' },
  )
  return (value) => ping.publish(value)
}

/** The same with `tryPublish`, which answers at once. */
async function odradekTry(game: Game): Promise<(value: number) => unknown> {
  const broker = createBroker()
  const ping = await broker.createTopic<number>('ping')
  const pong = await broker.createTopic<number>('pong')
  await ping.subscribe((d) => void pong.tryPublish(d.value), { id: 'right' })
  await pong.subscribe(
    (d) => {
      const next = game.next(d.value)
      if (next >= 0) ping.tryPublish(next)
    },
    { id: 'left' },
  )
  return (value) => ping.publish(value)
}

function eventEmitter(game: Game): (value: number) => unknown {
  const emitter = new EventEmitter()
  const emit = (topic: string, value: number): unknown => emitter.emit(topic, value)
  emitter.on('ping', (value: number) => process.nextTick(emit, 'pong', value))
  emitter.on('pong', (value: number) => {
    const next = game.next(value)
    if (next >= 0) process.nextTick(emit, 'ping', next)
  })
  return (value) => emit('ping', value)
}

function mqEmitter(game: Game): (value: number) => unknown {
  const emitter = mqemitter()
  const emit = (topic: string, value: number): unknown => emitter.emit({ topic, value })
  emitter.on('ping', (message: Message, done: () => void) => {
    process.nextTick(emit, 'pong', message.value)
    done()
  })
  emitter.on('pong', (message: Message, done: () => void) => {
    const next = game.next(message.value as number)
    if (next >= 0) process.nextTick(emit, 'ping', next)
    done()
  })
  return (value) => emit('ping', value)
}

function rxjsAsap(game: Game): (value: number) => unknown {
  const ping = new Subject<number>()
  const pong = new Subject<number>()
  ping.pipe(observeOn(asapScheduler)).subscribe((value) => pong.next(value))
  pong.pipe(observeOn(asapScheduler)).subscribe((value) => {
    const next = game.next(value)
    if (next >= 0) ping.next(next)
  })
  return (value) => ping.next(value)
}

function fastqPromises(game: Game): (value: number) => unknown {
  const ping = fastq.promise<null, number, void>(async (value: number) => {
    await pong.push(value)
  }, 1)
  const pong = fastq.promise<null, number, void>(async (value: number) => {
    const next = game.next(value)
    if (next >= 0) void ping.push(next)
  }, 1)
  return (value) => ping.push(value)
}

function emittery(game: Game): (value: number) => unknown {
  const emitter = new Emittery<{ ping: number; pong: number }>()
  emitter.on('ping', (value) => void emitter.emit('pong', value))
  emitter.on('pong', (value) => {
    const next = game.next(value)
    if (next >= 0) void emitter.emit('ping', next)
  })
  return (value) => emitter.emit('ping', value)
}

export const pingPong: Scenario = {
  name: 'ping-pong',
  title: 'Two topics whose handlers answer each other, one record under way',
  moved: 'round trips',
  rows: [
    speed('odradek', 'EventEmitter + nextTick'),
    speed('odradek', 'mqemitter + nextTick'),
    speed('odradek', 'rxjs asap'),
    speed('odradek', 'fastq promises'),
    speed('odradek', 'emittery'),
    speed('odradek, tryPublish', 'EventEmitter + nextTick'),
  ],
  sample: race({
    expectation: ordered((i) => i),
    contenders: [
      contender('odradek', odradek),
      contender('odradek, tryPublish', odradekTry),
      contender('EventEmitter + nextTick', eventEmitter),
      contender('mqemitter + nextTick', mqEmitter),
      contender('rxjs asap', rxjsAsap),
      contender('fastq promises', fastqPromises),
      contender('emittery', emittery),
    ],
  }),
}
