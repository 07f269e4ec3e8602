/**
 * Clients that come, go, crash, dawdle, miss answers and change their minds at random, while topics come, grow and go,
 * and an observer that knows of the group only what they are told. It holds the group to what KIP-848 promises: nobody
 * reads what another reads who was heard of in time, epochs that only grow, nobody of another epoch let in; and once
 * all do as they should, one epoch of all who are left, in which every partition that somebody wants has one reader.
 */
import { expect, it } from 'vitest'
import { Dice } from '../torture/dice.ts'
import { Client, ModernKit, REBALANCE_MS, SESSION_MS } from './modern-kit.ts'

const STEPS = 500
const TOPICS = ['a', 'b', 'c']

class Actor {
  readonly client: Client
  topicNames: string[]
  lastHeardMs: number
  /** Since when it may be holding what it was to give up. */
  lateSinceMs: number | undefined
  /** It does not know whether it was heard: the next one says all. */
  isUnsure = false
  isAway = false

  constructor(client: Client, topicNames: string[], nowMs: number) {
    this.client = client
    this.topicNames = topicNames
    this.lastHeardMs = nowMs
  }
}

class Run {
  readonly #dice: Dice
  readonly kit = new ModernKit({ a: 4, b: 3 })
  readonly actors: Actor[] = []
  #instances = 0

  constructor(seed: number) {
    this.#dice = new Dice(seed)
  }

  get #nowMs(): number {
    return this.kit.clock.monotonic()
  }

  async step(): Promise<void> {
    if (this.actors.length < 6 && this.#dice.chance(0.12)) this.#enter()
    if (this.actors.length > 0) this.#act(this.#dice.pick(this.actors))
    if (this.#dice.chance(0.06)) this.#change()
    if (this.#dice.chance(0.4)) await this.kit.clock.advance(this.#dice.below(8_000))
    this.observe()
  }

  #subscription(): string[] {
    return this.#dice.chance(0.6) ? [...TOPICS] : TOPICS.filter(() => this.#dice.chance(0.5))
  }

  #enter(instanceId: string | null = this.#instance()): void {
    const topicNames = this.#subscription()
    const assignor = this.#dice.pick(['uniform', 'range', null] as const)
    const client = new Client(this.kit, { instanceId, topicNames, assignor })
    const actor = new Actor(client, topicNames, this.#nowMs)
    this.actors.push(actor)
  }

  #instance(): string | null {
    if (this.#dice.chance(0.7)) return null
    this.#instances += 1
    return `instance-${this.#instances}`
  }

  #act(actor: Actor): void {
    const { client } = actor
    const isStatic = client.said.instanceId != null
    if (actor.isAway) {
      if (!this.#dice.chance(0.3)) return
      this.#drop(actor)
      this.#enter(client.said.instanceId)
    } else if (this.#dice.chance(0.02)) this.#drop(actor)
    else if (this.#dice.chance(0.03) && client.epoch > 0) {
      client.send({ epoch: -1 })
      this.#drop(actor)
    } else if (this.#dice.chance(0.05) && isStatic && client.epoch > 0) {
      if (client.send({ epoch: -2 }).error !== 'NONE') return
      client.owned = new Set()
      actor.isAway = true
    } else if (this.#dice.chance(0.04)) this.#stale(actor)
    else if (this.#dice.chance(0.08)) this.#miss(actor)
    else this.beat(actor, this.#dice.chance(0.6))
  }

  #drop(actor: Actor): void {
    this.actors.splice(this.actors.indexOf(actor), 1)
  }

  #stale(actor: Actor): void {
    const { client } = actor
    if (client.epoch === 0) return
    const { error } = client.send({ epoch: this.kit.group.epoch + 1 + this.#dice.below(3) })
    expect(['FENCED_MEMBER_EPOCH', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID']).toContain(error)
  }

  /** It is heard, and does not hear the answer. */
  #miss(actor: Actor): void {
    const result = actor.client.send(this.#whole(actor))
    actor.isUnsure = true
    if (result.error === 'NONE') this.#told(actor, result.assigned)
  }

  #whole({ topicNames }: Actor) {
    return { rebalanceTimeoutMs: REBALANCE_MS, topicNames }
  }

  #told(actor: Actor, assigned: ReadonlySet<string> | null): void {
    actor.lastHeardMs = this.#nowMs
    const told = assigned ?? actor.client.assigned
    const isLate = [...actor.client.owned].some((key) => !told.has(key))
    actor.lateSinceMs = isLate ? (actor.lateSinceMs ?? this.#nowMs) : undefined
  }

  /** As a consumer does that means well, if not at once. */
  beat(actor: Actor, obeys: boolean): void {
    const { client } = actor
    if (this.#dice.chance(0.05)) {
      actor.topicNames = this.#subscription()
      actor.isUnsure = true
    }
    const before = client.epoch
    const result = client.hear(actor.isUnsure ? this.#whole(actor) : {})
    if (result.error !== 'NONE') {
      const expected = [
        'FENCED_MEMBER_EPOCH',
        'UNKNOWN_MEMBER_ID',
        'FENCED_INSTANCE_ID',
        'UNRELEASED_INSTANCE_ID',
      ]
      expect(expected).toContain(result.error)
      if (result.error.endsWith('INSTANCE_ID')) this.#drop(actor)
      actor.isUnsure = true
      return
    }
    actor.isUnsure = false
    expect(result.epoch, 'an epoch that goes back').toBeGreaterThanOrEqual(before)
    expect(result.epoch, 'an epoch that there is not').toBeLessThanOrEqual(this.kit.group.epoch)
    this.#told(actor, client.assigned)
    // That it gave up is known once it says so, in the next one.
    if (obeys) client.obey()
  }

  #change(): void {
    const topic = this.#dice.pick(TOPICS)
    const count = this.kit.partitions.filter((each) => each.topic === topic).length
    if (count > 0 && this.#dice.chance(0.2)) this.kit.delete(topic)
    else if (count < 8) this.kit.create(topic, count + 1 + this.#dice.below(2))
  }

  /** Nobody reads what another reads, of those who were heard of, and gave up in time. */
  observe(): void {
    const readers = new Map<string, string>()
    for (const { client, lastHeardMs, lateSinceMs } of this.actors) {
      if (this.#nowMs - lastHeardMs >= SESSION_MS) continue
      if (lateSinceMs !== undefined && this.#nowMs - lateSinceMs >= REBALANCE_MS) continue
      for (const key of client.owned) {
        expect(readers.get(key), `two read ${key}`).toBeUndefined()
        readers.set(key, client.memberId)
      }
    }
    expect(this.kit.epochs, 'an epoch that comes again, or not').toEqual(this.kit.epochs.map((_, i) => i + 1))
  }

  /** All do as they should, every second. */
  async calm(rounds: number): Promise<void> {
    for (const actor of [...this.actors]) if (actor.isAway) this.#drop(actor)
    for (let i = 0; i < rounds; i++) {
      for (const actor of [...this.actors]) {
        const { client } = actor
        const whole = actor.isUnsure ? this.#whole(actor) : {}
        const { error } = client.beat(whole)
        actor.isUnsure = error !== 'NONE'
        if (error === 'NONE') this.#told(actor, client.assigned)
      }
      await this.kit.clock.advance(1_000)
      this.observe()
    }
  }
}

it.each(Array.from({ length: 40 }, (_, seed) => seed))(
  'keeps its promises whatever clients do, and comes to rest (seed %i)',
  async (seed) => {
    const run = new Run(seed)
    for (let i = 0; i < STEPS; i++) await run.step()
    await run.calm(SESSION_MS / 1_000 + REBALANCE_MS / 1_000)
    const { kit, actors } = run
    const { group } = kit
    expect(group.state).toBe(actors.length === 0 ? 'Empty' : 'Stable')
    expect([...group.members].map(({ id }) => id).sort()).toEqual(
      actors.map(({ client }) => client.memberId).sort(),
    )
    const wanted = new Set(actors.flatMap(({ topicNames }) => topicNames))
    const read = actors.flatMap(({ client }) => [...client.owned]).sort()
    expect(read).toEqual(
      kit.partitions
        .filter(({ topic }) => wanted.has(topic))
        .map(({ key }) => key)
        .sort(),
    )
    const topicOf = new Map(kit.partitions.map(({ topic, key }) => [key, topic]))
    for (const { client, topicNames } of actors) {
      expect(client.epoch).toBe(group.epoch)
      for (const key of client.owned) expect(topicNames).toContain(topicOf.get(key))
    }

    const { epoch } = group
    await run.calm(20)
    expect(group.epoch, 'an epoch without a reason').toBe(epoch)
    // A session each, and nothing else.
    expect(kit.due.size).toBe(actors.length)
    expect(kit.epochs.length, 'a run in which little happened').toBeGreaterThan(30)
  },
)
