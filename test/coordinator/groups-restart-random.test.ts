/**
 * Members that come, go, miss answers and are slow to give up, at random, at a broker that ends anywhere and comes back
 * again and again. Of the group the test knows what clients are told. Nobody reads what another reads, nobody who was
 * told an epoch is fenced by the end of a process, and once all do as they should, all is at rest.
 */
import { expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { KafkaMachine } from '../support/kafka-machine.ts'
import { ModernClient } from '../support/modern-client.ts'
import { Dice } from '../torture/dice.ts'

const { FENCED_MEMBER_EPOCH, NONE, UNKNOWN_MEMBER_ID } = KAFKA_ERRORS
const STEPS = 150
const COUNT = 8
/** Much less than a session goes by. */
const STEP_MS = 100

interface Actor {
  client: ModernClient
  /** What it reads: new partitions at once, and what it is to give up until it comes to it. */
  reads: readonly number[]
  instanceId: string | null
  /** It does not know whether it was heard. */
  isUnsure: boolean
  /** It has asked to leave, and has not heard. */
  isLeaving: boolean
}

class Run {
  readonly #dice: Dice
  readonly #where: string
  machine!: KafkaMachine
  readonly actors: Actor[] = []
  restarts = 0

  constructor(seed: number) {
    this.#dice = new Dice(seed)
    this.#where = `seed ${seed}`
  }

  async begin(): Promise<void> {
    this.machine = await KafkaMachine.open()
    await this.machine.world.broker.createTopic('orders', { partitions: COUNT })
  }

  async step(): Promise<void> {
    if (this.actors.length < 5 && this.#dice.chance(0.1)) this.#enter()
    if (this.#dice.chance(0.1)) this.#prepareEnd()
    const actor = this.actors[this.#dice.below(Math.max(this.actors.length, 1))]
    if (actor !== undefined) {
      if (this.#dice.chance(0.5)) actor.reads = actor.client.partitions
      const leaves = this.#dice.chance(0.05)
      if (leaves) await this.#leave(actor)
      else await this.beat(actor)
    }
    await this.machine.until(this.machine.clock.advance(STEP_MS))
    if (this.machine.isHalted || this.#dice.chance(0.02)) await this.#restart()
    this.observe()
  }

  #enter(): void {
    const isStatic = this.#dice.chance(0.3)
    const instanceId = isStatic ? `instance-${this.#dice.below(1_000_000)}` : null
    const client = new ModernClient(this.machine.world)
    // Who gets what goes by names: the same seed has the same ones.
    client.memberId = `m-${this.#dice.below(1_000_000)}`
    this.actors.push({ client, reads: [], instanceId, isUnsure: false, isLeaving: false })
  }

  #prepareEnd(): void {
    this.machine.haltIn = 1 + this.#dice.below(6)
    this.machine.haltHow = this.#dice.chance(0.5) ? 'before' : 'after'
  }

  async #restart(): Promise<void> {
    this.restarts++
    this.machine.haltIn = Number.POSITIVE_INFINITY
    const way = this.#dice.below(3)
    if (way === 0 && !this.machine.isHalted) await this.machine.restart()
    else if (way === 1) await this.machine.powerLoss(this.#dice.below(1_000_000))
    else await this.machine.kill()
    for (const actor of this.actors) {
      const { memberId, memberEpoch, owned } = actor.client
      actor.client = Object.assign(new ModernClient(this.machine.world), { memberId, memberEpoch, owned })
    }
  }

  async beat(actor: Actor): Promise<void> {
    const { client, instanceId } = actor
    const whole =
      actor.isUnsure && client.memberEpoch > 0
        ? { rebalanceTimeoutMs: 60_000, subscribedTopicNames: ['orders'] }
        : {}
    const topicPartitions =
      actor.reads.length === 0 ? [] : [{ topicId: this.#topicId, partitions: actor.reads }]
    const owned = client.memberEpoch === 0 ? {} : { topicPartitions }
    const heard = await this.machine.until(client.beat({ instanceId, ...whole, ...owned }))
    if (heard === undefined) {
      actor.isUnsure = true
      return
    }
    if (heard.errorCode === NONE) {
      actor.reads = [...new Set([...actor.reads, ...client.partitions])]
      actor.isUnsure = false
      actor.isLeaving = false
      return
    }
    // Its own leave may have put it out, if it did not hear of that. Who missed an answer may have to begin anew.
    const expected = actor.isLeaving ? [UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH] : [FENCED_MEMBER_EPOCH]
    expect(actor.isUnsure, `${this.#where}: refused with ${heard.errorCode}`).toBe(true)
    expect(expected, this.#where).toContain(heard.errorCode)
    this.#anew(actor)
  }

  #anew(actor: Actor): void {
    Object.assign(actor.client, { memberEpoch: 0, owned: [] })
    actor.reads = []
    actor.isLeaving = false
    actor.isUnsure = true
  }

  async #leave(actor: Actor): Promise<void> {
    const { client, instanceId } = actor
    if (client.memberEpoch === 0) return
    // Who leaves reads nothing any more, and may find out that it is still in it.
    actor.reads = []
    client.owned = []
    const heard = await this.machine.until(client.beat({ memberEpoch: -1, instanceId }))
    if (heard === undefined) {
      actor.isUnsure = true
      actor.isLeaving = true
    } else this.actors.splice(this.actors.indexOf(actor), 1)
  }

  get #topicId(): string {
    return this.machine.world.broker.describe('orders').id
  }

  observe(): void {
    const readers = new Map<number, Actor>()
    for (const actor of this.actors) {
      for (const partition of actor.reads) {
        const other = readers.get(partition)
        expect(
          other?.client.memberId,
          `${this.#where}: partition ${partition} is two members'`,
        ).toBeUndefined()
        readers.set(partition, actor)
      }
    }
  }

  async calm(): Promise<void> {
    this.machine.haltIn = Number.POSITIVE_INFINITY
    for (let round = 0; round < 8; round++) {
      for (const actor of this.actors) {
        actor.reads = actor.client.partitions
        await this.beat(actor)
        this.observe()
      }
    }
  }
}

it.each(Array.from({ length: 25 }, (_, seed) => seed))(
  'keeps its promises through the end of processes, and comes to rest (seed %i)',
  { timeout: 60_000 },
  async (seed) => {
    const run = new Run(seed)
    await run.begin()
    for (let i = 0; i < STEPS; i++) await run.step()
    await run.calm()
    const group = run.machine.world.broker.parts.groups.modern('g')
    const here = new Set([...(group?.members ?? [])].map(({ id }) => id))
    // Somebody may have gone whose leave nobody heard of.
    for (const { client } of run.actors) expect(here).toContain(client.memberId)
    if (run.actors.length > 0 && here.size === run.actors.length) {
      expect(group?.state).toBe('Stable')
      const read = run.actors.flatMap(({ reads }) => reads).sort()
      expect(read).toEqual(Array.from({ length: COUNT }, (_, i) => i))
    }
    expect(run.restarts, 'a run in which little happened').toBeGreaterThan(3)
  },
)
