/**
 * Faults on demand, for tests of Kafka's clients: errors that a broker answers only on a bad day, answers that come late
 * or not at all, leaders and coordinators that move. They stand in front of the handlers, so whatever is not asked for
 * goes on as it does: `before` the work, the broker has not heard of the request; `after` it, it has done what was asked.
 *
 *   request ─► observers ─► drop, delay, error ─► handler ─► drop, delay, error ─► observers ─► response
 *                                before                            after
 *
 * Chance comes from a seed: the same seed and the same requests have the same faults. Time is the broker's clock.
 */
import type { Broker } from '../broker.ts'
import { APIS } from '../wire/apis.ts'
import { KAFKA_ERRORS, type KafkaErrorName } from '../wire/errors.ts'
import { errorResponse } from './error-response.ts'
import { type Answer, Disconnect } from './handler.ts'
import { observed } from './observed.ts'
import { pause } from './pause.ts'
import type { Release } from './releases.ts'
import { mentions, type TopicRef } from './request-topics.ts'
import type { Interceptor, Routed } from './router.ts'
import type { KafkaServer } from './server.ts'

export { KAFKA_ERRORS, type KafkaErrorName } from '../wire/errors.ts'

/** Which requests: all that fit whatever is given. */
export interface FaultMatch {
  /** Name or key: `Produce`, 0. */
  readonly api?: string | number
  /** A topic that the request names. A fetch of a session names only what changed. */
  readonly topic?: string
  /** Of that topic. */
  readonly partition?: number
  readonly clientId?: string
  /** The one that is asked, by its id. */
  readonly node?: number
}

/** Which requests, how often, and when. */
export interface FaultOptions extends FaultMatch {
  /** How many of them that fit are passed on before the first. Default 0. */
  readonly skip?: number
  /** How often. Default: until it is removed. */
  readonly times?: number
  /** From 0 to 1. Default 1. */
  readonly probability?: number
  /** What its chance comes from. Default: that of the server, which all faults without one of their own share. */
  readonly seed?: number
  /** Before the broker does what it is asked, or after that. Default `before`. */
  readonly when?: 'before' | 'after'
}

/** A request with its answer, for whoever looks on. */
export interface ObservedRequest {
  /** Name of the API. */
  readonly api: string
  readonly version: number
  readonly clientId: string
  /** Id of the one that was asked. */
  readonly node: number
  readonly body: unknown
  /** Null where there is none, also where the connection is closed instead. */
  readonly response: unknown
  /** Why the connection is closed. */
  readonly error: unknown
  readonly durationMs: number
}

/** One fault, until it has happened as often as it should. */
export class Fault {
  /** How often it has happened. */
  hits: number = 0
  readonly #armed: Map<Fault, Armed>

  /** @internal */
  constructor(armed: Map<Fault, Armed>) {
    this.#armed = armed
  }

  /** Whether it may still happen. */
  get active(): boolean {
    return this.#armed.has(this)
  }

  /** It happens no more. */
  remove(): void {
    this.#armed.delete(this)
  }
}

type Act = (request: Routed, next: () => Answer<unknown>) => Answer<unknown>

interface Armed {
  readonly options: FaultOptions
  readonly act: Act
  readonly chance: () => number
  skip: number
  left: number
}

/** What goes wrong with a test server, at a test's word. */
export class Faults {
  /** What chance comes from. */
  readonly seed: number
  readonly #armed = new Map<Fault, Armed>()
  readonly #observers = new Set<(request: ObservedRequest) => void>()
  readonly #chance: () => number
  #at: { readonly broker: Broker; readonly server: KafkaServer } | undefined

  /** @internal */
  constructor(seed: number) {
    this.seed = seed
    this.#chance = chanceOf(seed)
  }

  /** @internal */
  attach(broker: Broker, server: KafkaServer): void {
    this.#at = { broker, server }
  }

  /** Answers an error: in each partition that is asked for, where the API has one for each, else for the whole request. */
  error(code: KafkaErrorName, options: FaultOptions = {}): Fault {
    const number = KAFKA_ERRORS[code]
    if (number === undefined) throw new RangeError(`there is no error of Kafka's that is called ${code}`)
    return this.#arm(options, ({ handler: { api }, body }, next) => {
      const answer = (): unknown => errorResponse(api, body, number)
      return options.when === 'after' ? then(next(), answer) : answer()
    })
  }

  /** Lets requests reach the broker, or answers leave it, so much later. */
  delay(delayMs: number, options: FaultOptions = {}): Fault {
    if (!(delayMs >= 0 && delayMs < Number.POSITIVE_INFINITY)) {
      throw new RangeError(`a delay is so many milliseconds; got ${delayMs}`)
    }
    return this.#arm(options, ({ call }, next) => {
      const { due } = this.#attached.broker.parts.ctx
      const wait = (): Promise<void> => pause(due, delayMs, call.client.signal)
      if (options.when !== 'after') return wait().then(next)
      return then(next(), (answer) => wait().then(() => answer))
    })
  }

  /** Closes the connection instead of an answer. */
  drop(options: FaultOptions = {}): Fault {
    return this.#arm(options, (_, next) => {
      const drop = (): never => {
        throw new Disconnect('a test drops the connection')
      }
      return options.when === 'after' ? then(next(), drop) : drop()
    })
  }

  /** Calls back for every request that was answered, or whose connection was closed. Answers the way to stop. */
  onRequest(listener: (request: ObservedRequest) => void): () => void {
    this.#observers.add(listener)
    return () => void this.#observers.delete(listener)
  }

  /** Makes a node the leader of a partition: clients that ask another one are told NOT_LEADER_OR_FOLLOWER. */
  moveLeader(topic: string, partition: number, node: number): void {
    const { server, broker } = this.#attached
    const { id, partitions } = broker.parts.topics.require(topic)
    if (partitions[partition] === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
    server.world.cluster.moveLeader(id, partition, nodeOf(server, node))
  }

  /** Makes a node the coordinator of a group or of a transactional id. */
  moveCoordinator(kind: 'group' | 'transaction', key: string, node: number): void {
    const { server } = this.#attached
    server.world.cluster.moveCoordinator(kind, key, nodeOf(server, node))
  }

  /** Spreads all groups and transactional ids over the nodes anew. */
  rehashCoordinators(): void {
    this.#attached.server.world.cluster.rehashCoordinators()
  }

  /**
   * Speaks no more than that release of Kafka from now on; without one, all there is. Clients that are connected have
   * asked what it speaks: their connections are closed, as by a broker that is replaced.
   */
  pretend(release?: Release): void {
    this.#attached.server.speakAs(release)
  }

  /** No fault happens any more. What was moved stays where it is, and who looks on goes on doing so. */
  clear(): void {
    this.#armed.clear()
  }

  /** @internal In front of the handlers. */
  readonly interceptor: Interceptor = (request, next) => {
    if (this.#observers.size === 0) return this.#faulty(request, next)
    const { clock } = this.#attached.broker.parts.ctx
    const { handler, body, call } = request
    const { version, clientId, node } = call
    const of = { api: handler.api.name, version, clientId, node: node.id, body }
    return observed(
      () => this.#faulty(request, next),
      clock,
      (response, error, durationMs) => {
        for (const observer of this.#observers) observer({ ...of, response, error, durationMs })
      },
    )
  }

  /** All that fit happen to it, the first that was asked for outermost. */
  #faulty(request: Routed, next: () => Answer<unknown>): Answer<unknown> {
    const due = [...this.#armed].filter(([fault, armed]) => this.#isDue(fault, armed, request))
    return due.reduceRight<() => Answer<unknown>>(
      (inner, [, { act }]) =>
        () =>
          act(request, inner),
      next,
    )()
  }

  #isDue(fault: Fault, armed: Armed, request: Routed): boolean {
    const { options } = armed
    if (!this.#fits(options, request)) return false
    if (armed.skip > 0) {
      armed.skip--
      return false
    }
    if (options.probability !== undefined && armed.chance() >= options.probability) return false
    fault.hits++
    armed.left--
    if (armed.left <= 0) this.#armed.delete(fault)
    return true
  }

  #fits(match: FaultMatch, { handler: { api }, call, body }: Routed): boolean {
    if (match.api !== undefined && match.api !== api.key && match.api !== api.name) return false
    if (match.clientId !== undefined && match.clientId !== call.clientId) return false
    if (match.node !== undefined && match.node !== call.node.id) return false
    return match.topic === undefined || mentions(body, this.#topic(match.topic), match.partition)
  }

  /** By name; by its id too, where there is such a topic. */
  #topic(name: string): TopicRef {
    return { name, id: this.#attached.broker.parts.topics.get(name)?.id }
  }

  #arm(options: FaultOptions, act: Act): Fault {
    const {
      api,
      skip = 0,
      times = Number.POSITIVE_INFINITY,
      probability = 1,
      seed,
      when = 'before',
    } = options
    if (!(skip >= 0 && times >= 1 && probability >= 0 && probability <= 1)) {
      throw new RangeError('skip is 0 or more, times 1 or more, and a probability from 0 to 1')
    }
    if (when !== 'before' && when !== 'after') throw new RangeError('when is before or after')
    if (options.partition !== undefined && options.topic === undefined) {
      throw new RangeError('a partition is one of a topic')
    }
    if (api !== undefined && !APIS.some(({ name, key }) => name === api || key === api)) {
      throw new RangeError(`there is no API ${api}; its name is as in Kafka's protocol: Produce, JoinGroup`)
    }
    const fault = new Fault(this.#armed)
    const chance = seed === undefined ? this.#chance : chanceOf(seed)
    this.#armed.set(fault, { options, act, chance, skip, left: times })
    return fault
  }

  get #attached(): { readonly broker: Broker; readonly server: KafkaServer } {
    if (this.#at === undefined) throw new Error('the server is not open yet')
    return this.#at
  }
}

function then(answer: Answer<unknown>, next: (answer: unknown) => Answer<unknown>): Answer<unknown> {
  return answer instanceof Promise ? answer.then(next) : next(answer)
}

function nodeOf({ world }: KafkaServer, id: number) {
  const node = world.cluster.nodes[id]
  if (node !== undefined) return node
  throw new RangeError(`there is no node ${id}; there are ${world.cluster.nodes.length}`)
}

/** Mulberry32: good enough for faults, and the same everywhere. */
function chanceOf(seed: number): () => number {
  let random = seed
  return () => {
    random = (random + 0x6d2b79f5) | 0
    let mixed = Math.imul(random ^ (random >>> 15), 1 | random)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
