/**
 * Peers that call their listeners: EventEmitter and its relatives, mqemitter, emittery. Each is used as its
 * own documentation does. Where a call is synchronous the producer needs no turn of the loop.
 */
import { EventEmitter } from 'node:events'
import Emittery from 'emittery'
import { EventEmitter as EventEmitter3 } from 'eventemitter3'
import mittModule from 'mitt'
import mqemitter, { type Message } from 'mqemitter'
import type { Contender, Session } from '../race.ts'
import { Tally } from '../tally.ts'
import type { Payload } from './payload.ts'

/** Its types describe the CommonJS build, whose default is a member; Node gets the module, whose default it is. */
const mitt = mittModule as unknown as typeof mittModule.default

/** Records that Odradek keeps per partition, so that a ring of values is a like comparison. */
export const RETAINED = 65_536

function tallies(readers: number): Tally[] {
  return Array.from({ length: readers }, () => new Tally())
}

/** The limit: a synchronous call, nothing kept. */
export function eventEmitter<T>(readers: number, { make, idOf }: Payload<T>): Contender {
  return {
    name: 'EventEmitter',
    open(): Session {
      const emitter = new EventEmitter()
      const all = tallies(readers)
      for (const tally of all) emitter.on('orders', (value: T) => tally.add(idOf(value)))
      return {
        tallies: all,
        run(count) {
          for (let i = 0; i < count; i++) emitter.emit('orders', make(i))
        },
      }
    },
  }
}

/** The limit of anything that can replay: a synchronous call, and the values kept in a ring. */
export function eventEmitterWithRing<T>(readers: number, { make, idOf }: Payload<T>): Contender {
  return {
    name: 'EventEmitter + ring',
    open(): Session {
      const emitter = new EventEmitter()
      const all = tallies(readers)
      const ring = new Array<T | undefined>(RETAINED).fill(undefined)
      let end = 0
      for (const tally of all) emitter.on('orders', (value: T) => tally.add(idOf(value)))
      return {
        tallies: all,
        run(count) {
          for (let i = 0; i < count; i++) {
            const value = make(i)
            ring[end++ & (RETAINED - 1)] = value
            emitter.emit('orders', value)
          }
        },
      }
    },
  }
}

export function eventEmitter3<T>(readers: number, { make, idOf }: Payload<T>): Contender {
  return {
    name: 'eventemitter3',
    open(): Session {
      const emitter = new EventEmitter3()
      const all = tallies(readers)
      for (const tally of all) emitter.on('orders', (value: T) => tally.add(idOf(value)))
      return {
        tallies: all,
        run(count) {
          for (let i = 0; i < count; i++) emitter.emit('orders', make(i))
        },
      }
    },
  }
}

export function mittEmitter<T>(readers: number, { make, idOf }: Payload<T>): Contender {
  return {
    name: 'mitt',
    open(): Session {
      const emitter = mitt<{ orders: T }>()
      const all = tallies(readers)
      for (const tally of all) emitter.on('orders', (value) => tally.add(idOf(value)))
      return {
        tallies: all,
        run(count) {
          for (let i = 0; i < count; i++) emitter.emit('orders', make(i))
        },
      }
    },
  }
}

/** Listeners say when they are done, and the message is an object with a topic, both by its contract. */
export function mqEmitter<T>(readers: number, { make, idOf }: Payload<T>): Contender {
  return {
    name: 'mqemitter',
    open(): Session {
      const emitter = mqemitter()
      const all = tallies(readers)
      for (const tally of all) {
        emitter.on('orders', (message: Message, done: () => void) => {
          tally.add(idOf(message.value as T))
          done()
        })
      }
      return {
        tallies: all,
        run(count) {
          for (let i = 0; i < count; i++) emitter.emit({ topic: 'orders', value: make(i) })
        },
        close: () => new Promise((resolve) => emitter.close(resolve)),
      }
    },
  }
}

/** `await emit()`, record by record, as its documentation has it. */
export function emitteryAwait<T>(readers: number, { make, idOf }: Payload<T>): Contender {
  return {
    name: 'emittery',
    open(): Session {
      const emitter = new Emittery<{ orders: T }>()
      const all = tallies(readers)
      for (const tally of all) emitter.on('orders', (value) => tally.add(idOf(value)))
      return {
        tallies: all,
        async run(count) {
          for (let i = 0; i < count; i++) await emitter.emit('orders', make(i))
        },
      }
    },
  }
}
