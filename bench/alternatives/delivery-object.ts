/**
 * The envelope a handler gets must be read-only. Freezing each costs more than making it; getters over
 * private fields refuse an assignment just as well, for nothing. An object of a derived class costs a call: what
 * `super()` calls is not inlined where the constructor itself is.
 */
import { type Contender, race, type Session } from '../race.ts'
import { type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

interface Slot {
  readonly topic: string
  readonly generation: number
}

interface Delivery {
  readonly topic: string
  readonly offset: number
  readonly value: number
  readonly attempt: number
}

class WithPrivateFields implements Delivery {
  readonly #slot: Slot
  readonly #offset: number
  readonly #value: number
  readonly #attempt: number
  readonly #generation: number

  constructor(slot: Slot, offset: number, value: number, attempt: number) {
    this.#slot = slot
    this.#offset = offset
    this.#value = value
    this.#attempt = attempt
    this.#generation = slot.generation
  }

  get topic(): string {
    return this.#slot.topic
  }
  get offset(): number {
    return this.#offset
  }
  get value(): number {
    return this.#value
  }
  get attempt(): number {
    return this.#attempt
  }
  ack(): boolean {
    return this.#slot.generation === this.#generation
  }
}

class WithPlainFields implements Delivery {
  readonly topic: string
  readonly offset: number
  readonly value: number
  readonly attempt: number
  readonly slot: Slot
  readonly generation: number

  constructor(slot: Slot, offset: number, value: number, attempt: number) {
    this.topic = slot.topic
    this.offset = offset
    this.value = value
    this.attempt = attempt
    this.slot = slot
    this.generation = slot.generation
  }

  ack(): boolean {
    return this.slot.generation === this.generation
  }
}

class View {
  readonly offset: number
  readonly value: number

  constructor(offset: number, value: number) {
    this.offset = offset
    this.value = value
  }
}

class Derived extends View implements Delivery {
  readonly topic: string
  readonly attempt: number
  readonly slot: Slot
  readonly generation: number

  constructor(slot: Slot, offset: number, value: number, attempt: number) {
    super(offset, value)
    this.topic = slot.topic
    this.attempt = attempt
    this.slot = slot
    this.generation = slot.generation
  }
}

type Make = (slot: Slot, offset: number, value: number, attempt: number) => Delivery

/** The handler keeps the last 256, so that no delivery can be optimised away. */
function contender(name: string, make: Make): Contender {
  return {
    name,
    open(): Session {
      const slot: Slot = { topic: 'orders', generation: 1 }
      const tally = new Tally()
      const kept = new Array<Delivery | null>(256).fill(null)
      return {
        tallies: [tally],
        run(count) {
          for (let i = 0; i < count; i++) {
            const delivery = make(slot, i, i, 1)
            kept[i & 255] = delivery
            tally.add(delivery.value)
          }
        },
      }
    },
  }
}

export const deliveryObject: Scenario = {
  name: 'delivery-object',
  title: 'A read-only envelope per delivery',
  moved: 'deliveries',
  rows: [
    speed('private fields', 'frozen'),
    speed('plain fields', 'frozen'),
    speed('private fields', 'plain fields'),
    speed('plain fields', 'derived class'),
  ],
  sample: race({
    expectation: ordered((i) => i),
    contenders: [
      contender(
        'private fields',
        (slot, offset, value, at) => new WithPrivateFields(slot, offset, value, at),
      ),
      contender('plain fields', (slot, offset, value, at) => new WithPlainFields(slot, offset, value, at)),
      contender('derived class', (slot, offset, value, at) => new Derived(slot, offset, value, at)),
      contender('frozen', (slot, offset, value, at) =>
        Object.freeze(new WithPlainFields(slot, offset, value, at)),
      ),
    ],
  }),
}
