/**
 * Clients that come, go, crash and dawdle at random, and an observer that knows of the group only what they are told. It
 * holds the group to what Kafka promises: one leader and one owner of each partition in a generation, generations
 * that never come again, nobody of an earlier one let in, nobody kept who was not heard of; and once all do as
 * they should, one generation of all who are left.
 */
import { expect, it } from 'vitest'
import type { GroupError, JoinResult } from '../../src/coordinator/classic-requests.ts'
import { Dice } from '../torture/dice.ts'
import { bytes, type Client, GroupKit, protocol } from './classic-kit.ts'

const PARTITIONS = 7
const STEPS = 400
const SESSION_MS = 10_000
const REBALANCE_MS = 25_000

interface Generation {
  readonly leader: string
  readonly members: Set<string>
  /** As the leader gave them out, the first time. */
  given: Map<string, string> | undefined
  readonly owners: Map<string, string>
}

type Doing = 'joining' | 'joined' | 'syncing' | 'member' | 'gone'

class Actor {
  doing: Doing = 'joining'
  lastHeardMs = 0
  readonly client: Client

  constructor(client: Client) {
    this.client = client
  }
}

class Run {
  readonly #dice: Dice
  /** What answers broke. */
  fault: unknown
  readonly #generations = new Map<number, Generation>()
  readonly actors: Actor[] = []
  readonly kit: GroupKit
  #newest = 0
  #instances = 0

  constructor(seed: number) {
    this.#dice = new Dice(seed)
    this.kit = new GroupKit({ initialRebalanceDelayMs: seed % 2 === 0 ? 0 : 2_000 })
  }

  async step(): Promise<void> {
    if (this.actors.length < 6 && this.#dice.chance(0.15)) this.#newcomer()
    if (this.actors.length > 0) await this.#act(this.#dice.pick(this.actors))
    if (this.#dice.chance(0.3)) await this.kit.clock.advance(this.#dice.below(4_000))
    await this.kit.clock.settle()
    if (this.fault !== undefined) throw this.fault
  }

  #newcomer(): void {
    const isStatic = this.#dice.chance(0.3)
    const said = {
      sessionTimeoutMs: SESSION_MS,
      rebalanceTimeoutMs: REBALANCE_MS,
      requiresId: this.#dice.chance(0.7),
      canSkipAssignment: this.#dice.chance(0.5),
      protocols: [protocol('range'), protocol(this.#dice.pick(['sticky', 'own']))],
    }
    const instance = isStatic ? { instanceId: `instance-${++this.#instances}` } : {}
    this.#enter(this.kit.client({ ...said, ...instance }))
  }

  #enter(client: Client): void {
    const actor = new Actor(client)
    this.actors.push(actor)
    client.onAnswer = () => {
      try {
        if (actor.doing === 'joining') this.#joined(actor)
        else if (actor.doing === 'syncing') this.#synced(actor)
      } catch (error) {
        this.fault ??= error
      }
    }
  }

  /** What a client does of itself, and what may happen to it. */
  async #act(actor: Actor): Promise<void> {
    const { client } = actor
    if (this.#dice.chance(0.04)) return this.#crash(actor)
    if (this.#dice.chance(0.04)) return this.#restart(actor)
    if (this.#dice.chance(0.05) && client.memberId !== '' && !client.isWaiting) {
      client.leave()
      return this.#crash(actor)
    }
    if (this.#dice.chance(0.05)) {
      client.disconnect()
      await this.kit.clock.settle()
    }
    if (this.#dice.chance(0.05) && actor.doing === 'member') this.#stale(actor)
    if (this.#dice.chance(0.05) && actor.doing === 'member') return this.#join(actor)
    this.proceed(actor)
  }

  #crash(actor: Actor): void {
    actor.client.disconnect()
    actor.doing = 'gone'
    this.actors.splice(this.actors.indexOf(actor), 1)
  }

  /** A program that ends and begins again: a static member keeps its instance. */
  #restart(actor: Actor): void {
    this.#crash(actor)
    this.#enter(this.kit.client(actor.client.said))
  }

  #stale(actor: Actor): void {
    const { client } = actor
    for (const answer of [client.heartbeat(client.generation - 1), client.commit(client.generation - 1)]) {
      expect(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID']).toContain(answer)
    }
  }

  #join(actor: Actor): void {
    actor.doing = 'joining'
    actor.client.join()
  }

  /** As a consumer does that means well. */
  proceed(actor: Actor): void {
    const { client } = actor
    if (client.isWaiting) return
    if (actor.doing === 'joining') client.join()
    else if (actor.doing === 'joined' || (actor.doing === 'syncing' && client.synced === null)) {
      this.#sync(actor)
    } else if (actor.doing === 'member') {
      this.#hear(actor, this.#dice.chance(0.5) ? client.heartbeat() : client.commit())
    }
  }

  #sync(actor: Actor): void {
    const { client } = actor
    const { leader, members, skipAssignment } = client.joined as JoinResult
    actor.doing = 'syncing'
    if (leader !== client.memberId) {
      client.sync()
      return
    }
    const ids = members.map(({ memberId }) => memberId)
    const shares = new Map(ids.map((id) => [id, [] as number[]]))
    for (let p = 0; p < PARTITIONS; p++) shares.get(ids[p % ids.length] as string)?.push(p)
    const given = [...shares].map(([id, partitions]) => [id, partitions.join()] as const)
    const generation = this.#generations.get(client.generation) as Generation
    if (!skipAssignment) generation.given ??= new Map(given)
    client.sync(given.map(([id, partitions]) => [id, bytes(partitions)] as const))
  }

  #hear(actor: Actor, answer: GroupError): void {
    const { client } = actor
    const nowMs = this.kit.clock.monotonic()
    if (answer === 'NONE' || answer === 'REBALANCE_IN_PROGRESS') {
      expect(client.generation, 'let in of an earlier generation').toBe(this.#newest)
      expect(nowMs - actor.lastHeardMs, 'kept although it was not heard of').toBeLessThan(SESSION_MS)
      actor.lastHeardMs = nowMs
    }
    if (answer === 'NONE') return
    this.#join(this.#forget(actor, answer))
  }

  /** What a client forgets at an error. */
  #forget(actor: Actor, error: GroupError): Actor {
    if (error === 'UNKNOWN_MEMBER_ID' || error === 'FENCED_INSTANCE_ID') actor.client.memberId = ''
    actor.doing = 'joining'
    return actor
  }

  #joined(actor: Actor): void {
    const { joined } = actor.client
    if (joined === undefined || joined === null) return
    if (joined.error !== 'NONE') {
      if (joined.error !== 'MEMBER_ID_REQUIRED') this.#forget(actor, joined.error)
      actor.client.joined = undefined
      return
    }
    const { generation, leader, memberId, members } = joined
    expect(generation, 'an earlier generation').toBeGreaterThanOrEqual(this.#newest)
    if (generation > this.#newest) {
      expect(this.#generations.has(generation), 'a generation that comes again').toBe(false)
      this.#newest = generation
      this.#generations.set(generation, { leader, members: new Set(), given: undefined, owners: new Map() })
    }
    const known = this.#generations.get(generation) as Generation
    const isNamesake = this.#isStatic(leader) || this.#isStatic(known.leader)
    if (!isNamesake) expect(leader, 'two leaders').toBe(known.leader)
    known.members.add(memberId)
    const ids = members.map((each) => each.memberId)
    expect(new Set(ids).size).toBe(ids.length)
    if (ids.length > 0) expect(ids).toContain(memberId)
    actor.doing = 'joined'
    actor.lastHeardMs = this.kit.clock.monotonic()
  }

  /** Its id changes when it comes back. */
  #isStatic(memberId: string): boolean {
    return memberId.startsWith('instance-')
  }

  #synced(actor: Actor): void {
    const { synced, memberId, generation, assignment } = actor.client
    if (synced === undefined || synced === null) return
    if (synced.error !== 'NONE') {
      this.#forget(actor, synced.error)
      return
    }
    const known = this.#generations.get(generation) as Generation
    if (!this.#isStatic(memberId)) expect(assignment).toBe(known.given?.get(memberId) ?? '')
    const name = this.#isStatic(memberId) ? memberId.slice(0, 'instance-'.length + 2) : memberId
    for (const partition of assignment === '' ? [] : assignment.split(',')) {
      const owner = known.owners.get(partition) ?? name
      expect(owner, `generation ${generation}, partition ${partition}`).toBe(name)
      known.owners.set(partition, name)
    }
    actor.doing = 'member'
    actor.lastHeardMs = this.kit.clock.monotonic()
  }

  get isSettled(): boolean {
    return this.actors.every(({ doing }) => doing === 'member') && this.kit.group.state === 'Stable'
  }

  /** All do as they should, every second. */
  async calm(rounds: number, until: () => boolean): Promise<void> {
    for (let i = 0; i < rounds && !until(); i++) {
      for (const actor of this.actors) this.proceed(actor)
      await this.kit.clock.advance(1_000)
      if (this.fault !== undefined) throw this.fault
    }
  }
}

it.each(Array.from({ length: 24 }, (_, seed) => seed))(
  'keeps its promises whatever clients do, and comes to rest (seed %i)',
  async (seed) => {
    const run = new Run(seed)
    for (let i = 0; i < STEPS; i++) await run.step()
    const { kit, actors } = run
    await run.calm(400, () => run.isSettled && kit.group.members.size === actors.length)
    const ids = actors.map(({ client }) => client.memberId)
    expect([...kit.group.members].map(({ id }) => id).sort()).toEqual(ids.sort())
    expect(new Set(actors.map(({ client }) => client.generation)).size).toBeLessThanOrEqual(1)
    const owned = actors.flatMap(({ client }) => client.assignment.split(',').filter((each) => each !== ''))
    if (actors.length > 0) expect(owned.sort()).toEqual(Array.from({ length: PARTITIONS }, (_, p) => `${p}`))

    const { generation } = kit.group
    await run.calm(40, () => false)
    expect(kit.group.generation, 'a generation without a rebalance').toBe(generation)
    expect(kit.due.size).toBe(actors.length)
  },
)
