/**
 * A broker whose time moves only when told to, with everything it raised and logged at hand, and the few
 * things that tests of its semantics say again and again.
 */
import { Broker, type BrokerOptions } from '../../src/broker.ts'
import type { EventName } from '../../src/core/events.ts'
import type { Engine, LogSpec, PartitionLog } from '../../src/log/contract.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { OdradekError } from '../../src/model/errors.ts'
import type { BrokerEvents, Logger } from '../../src/model/views.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { withLogs } from './engines.ts'
import { engineOfSuite } from './suite.ts'

export interface Logged {
  readonly level: keyof Logger
  readonly details: object
  readonly message: string
}

export class World {
  readonly clock: ManualClock
  readonly logged: Logged[] = []
  readonly broker: Broker
  /** The newest log of each partition, by `topic/partition`. */
  readonly logs: Map<string, PartitionLog> = new Map()
  /** What logs were asked for, in order. */
  readonly specs: LogSpec[] = []
  readonly #raised: { readonly name: EventName; readonly event: unknown }[] = []

  /** `engine`: that of the suite, if nothing is said. */
  constructor(options: BrokerOptions = {}, engine?: Engine, clock: ManualClock = new ManualClock()) {
    this.clock = clock
    const write =
      (level: keyof Logger) =>
      (details: object, message: string): void => {
        this.logged.push({ level, details, message })
      }
    const logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
    const inner = engine ?? engineOfSuite(clock)
    const outer = withLogs(inner, async (spec) => {
      this.specs.push(spec)
      const log = await inner.openLog(spec)
      this.logs.set(`${spec.topic}/${spec.partition}`, log)
      return log
    })
    this.broker = new Broker(
      outer,
      { clock: this.clock, random: () => 0, logger, ...options },
      { observe: (name, event) => this.#raised.push({ name, event }) },
    )
  }

  /** Every event of that name so far, in order. */
  readonly raised = <Name extends EventName>(name: Name): BrokerEvents[Name][] =>
    this.#raised.filter((each) => each.name === name).map((each) => each.event as BrokerEvents[Name])

  /** Lets everything that can happen without time happen. */
  readonly settle = (): Promise<void> => this.clock.settle()
}

/** The code of the OdradekError that `promise` rejects with, or what else became of it. */
export function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    (value) => `resolved with ${JSON.stringify(value)}`,
    (error: unknown) => (error instanceof OdradekError ? error.code : `rejected with ${String(error)}`),
  )
}

/** The code of the OdradekError that `call` throws at once, or what else it did. */
export function codeThrown(call: () => unknown): string {
  try {
    return `returned ${String(call())}`
  } catch (error) {
    return error instanceof OdradekError ? error.code : `threw ${String(error)}`
  }
}

/** Whether and how a promise has settled by now, for what must still be waiting. */
export function watch<T>(promise: Promise<T>): { state: 'waiting' | 'resolved' | 'rejected'; value?: T } {
  const watched: { state: 'waiting' | 'resolved' | 'rejected'; value?: T } = { state: 'waiting' }
  promise.then(
    (value) => {
      watched.state = 'resolved'
      watched.value = value
    },
    () => {
      watched.state = 'rejected'
    },
  )
  return watched
}

/** A subscriber that keeps what it gets, for `ack: 'manual'`. */
export class Hands {
  readonly deliveries: Delivery[] = []

  readonly take = (delivery: Delivery): void => {
    this.deliveries.push(delivery)
  }

  get values(): unknown[] {
    return this.deliveries.map((delivery) => delivery.value)
  }

  /** The newest one. */
  get last(): Delivery {
    return this.deliveries.at(-1) as Delivery
  }
}

/** 0 … n − 1. */
export function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i)
}
