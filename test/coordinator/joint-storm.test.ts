/**
 * Subscribers and members of the protocol in one group, who come, go, crash, dawdle, nack and take too long at random,
 * while records come, and the broker itself dies. The history checker judges what all of them saw: each partition in one
 * pair of hands, in order, nothing lost, nothing that was settled again, but after a crash.
 *
 * A client keeps to its times, as clients do: one that was not heard of for a session, or has not given up for its rebalance
 * timeout, stops by itself. Attempts are not judged, as they begin anew where a partition changes sides.
 */
import { afterEach, expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { History } from '../../src/testing/history.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { type Disk, type DiskEngine, fileDisk, plainDisk } from '../support/disks.ts'
import { KafkaWorld } from '../support/kafka.ts'
import { ModernClient } from '../support/modern-client.ts'
import { Dice } from '../torture/dice.ts'

const GROUP = 'billing'
const TOPIC = 'orders'
const PARTITIONS = 5
const STEPS = 600
const SESSION_MS = 45_000
const REBALANCE_MS = 60_000

interface InHand {
  readonly partition: number
  readonly offset: number
  readonly event: number
}

/** A client that reads one record of a partition after the other. */
class Reader {
  readonly client: ModernClient
  /** What it reads, which may lag behind what it was told. */
  owned: ModernClient['owned'] = []
  heardMs = 0
  lateSinceMs: number | undefined
  readonly inHand = new Map<number, InHand>()
  readonly positions = new Map<number, number>()

  constructor(client: ModernClient) {
    this.client = client
  }

  get partitions(): number[] {
    return this.owned.flatMap(({ partitions }) => partitions)
  }
}

class Local {
  readonly subscription: Subscription
  readonly inHand: { delivery: Delivery; event: number; isOver: boolean }[] = []

  constructor(subscription: Subscription) {
    this.subscription = subscription
  }
}

class Storm {
  readonly history: History
  readonly #dice: Dice
  readonly #disk: Disk
  #engine!: DiskEngine
  world!: KafkaWorld
  readonly locals = new Map<string, Local>()
  readonly readers = new Set<Reader>()
  #ids = 0
  #values = 0
  /** How often a partition was read by the other side than before. */
  crossings = 0
  readonly #lastSide = new Map<number, string>()

  constructor(seed: number, disk: Disk) {
    this.history = new History({ seed })
    this.#dice = new Dice(seed)
    this.#disk = disk
  }

  async start(): Promise<void> {
    await this.#boot(new ManualClock())
    await this.world.broker.createTopic(TOPIC, { partitions: PARTITIONS })
    this.history.group(GROUP, { order: 'partition', ownership: 'partition', lossless: true })
    for (let p = 0; p < PARTITIONS; p++) {
      this.history.resetOk(this.history.reset(GROUP, TOPIC, p), 0)
    }
  }

  async #boot(clock: ManualClock): Promise<void> {
    this.#engine = await this.#disk.open(new ManualClock())
    this.world = new KafkaWorld({ engine: this.#engine, clock })
    await this.world.broker.restore()
  }

  get #nowMs(): number {
    return this.world.clock.monotonic()
  }

  async step(): Promise<void> {
    const dice = this.#dice
    if (dice.chance(0.5)) await this.#publish(dice.below(PARTITIONS))
    if (dice.chance(0.06) && this.locals.size < 3) await this.#subscribe()
    if (dice.chance(0.06) && this.readers.size < 3)
      this.readers.add(new Reader(new ModernClient(this.world, { group: GROUP })))
    if (dice.chance(0.04) && this.locals.size > 0) await this.#close(dice.pick([...this.locals.keys()]))
    for (const local of this.locals.values()) if (dice.chance(0.6)) this.#settle(local)
    for (const reader of [...this.readers]) await this.#act(reader)
    if (dice.chance(0.3)) await this.#pass(dice.below(dice.chance(0.1) ? 40_000 : 4_000))
    await this.world.settle()
    this.#observe()
  }

  async #publish(partition: number): Promise<void> {
    const value = ++this.#values
    const send = this.history.send('p', TOPIC, value)
    const { offset } = await this.world.broker.publish(TOPIC, value, { partition })
    this.history.sendOk(send, { partition, offset })
  }

  // ── subscribers ───────────────────────────────────────────────────────────────────────────────

  async #subscribe(): Promise<void> {
    const id = `local-${++this.#ids}`
    const subscription = await this.world.broker.subscribe(TOPIC, (d) => this.#take(id, d), {
      id,
      group: GROUP,
      assignment: 'sticky',
      from: 'earliest',
      ack: 'manual',
      concurrency: 2,
      retry: { attempts: 1_000, delayMs: 10, jitter: 0 },
    })
    this.locals.set(id, new Local(subscription))
    // What was handed out before the promise resolved.
    this.locals.get(id)?.inHand.push(...this.#early.splice(0))
  }

  readonly #early: Local['inHand'] = []

  #take(id: string, delivery: Delivery): void {
    const { partition, offset, value } = delivery
    const event = this.history.deliver(
      GROUP,
      id,
      { topic: TOPIC, partition, offset, value: value as number, key: null },
      delivery.attempt,
    )
    this.#note(partition, 'local')
    const taken = { delivery, event, isOver: false }
    const local = this.locals.get(id)
    if (local === undefined) this.#early.push(taken)
    else local.inHand.push(taken)
    delivery.signal.addEventListener('abort', () => this.#end(taken, 'release'))
  }

  #end(taken: Local['inHand'][number], how: 'ack' | 'nack' | 'release'): void {
    if (taken.isOver) return
    taken.isOver = true
    this.history.settle(taken.event, how)
    for (const { inHand } of this.locals.values()) {
      if (inHand.includes(taken)) inHand.splice(inHand.indexOf(taken), 1)
    }
  }

  #settle({ inHand }: Local, always = false): void {
    for (const taken of [...inHand]) {
      if (!always && this.#dice.chance(0.3)) continue
      const nacks = !always && this.#dice.chance(0.2)
      if (nacks ? taken.delivery.nack() : taken.delivery.ack()) this.#end(taken, nacks ? 'nack' : 'ack')
    }
  }

  async #close(id: string): Promise<void> {
    const local = this.locals.get(id) as Local
    await local.subscription.close({ drainMs: 0 })
    this.locals.delete(id)
    this.history.leave(GROUP, id)
  }

  // ── clients ───────────────────────────────────────────────────────────────────────────────────

  async #act(reader: Reader): Promise<void> {
    const dice = this.#dice
    if (dice.chance(0.01)) return this.#drop(reader)
    if (dice.chance(0.02) && reader.client.memberEpoch > 0) {
      this.#stop(reader)
      await reader.client.beat({ memberEpoch: -1 })
      this.readers.delete(reader)
      return
    }
    if (dice.chance(0.35)) await this.beat(reader, dice.chance(0.7))
    if (dice.chance(0.7)) await this.read(reader)
    if (dice.chance(0.6)) await this.commit(reader)
  }

  /** It reads nothing any more, and says so to nobody. */
  #drop(reader: Reader): void {
    this.#stop(reader)
    this.readers.delete(reader)
  }

  #stop(reader: Reader): void {
    for (const { event } of reader.inHand.values()) this.history.settle(event, 'release')
    reader.inHand.clear()
    reader.positions.clear()
    reader.owned = []
    reader.lateSinceMs = undefined
  }

  async beat(reader: Reader, obeys: boolean): Promise<void> {
    const { client } = reader
    const told = client.owned
    if (client.memberEpoch > 0) client.owned = reader.owned
    const heard = await client.beat()
    if (heard.errorCode !== KAFKA_ERRORS.NONE) {
      expect([KAFKA_ERRORS.UNKNOWN_MEMBER_ID, KAFKA_ERRORS.FENCED_MEMBER_EPOCH]).toContain(heard.errorCode)
      this.#stop(reader)
      client.memberEpoch = 0
      client.owned = []
      return
    }
    if (heard.assignment === null && client.memberEpoch > 0) client.owned = told
    reader.heardMs = this.#nowMs
    const now = new Set(client.partitions)
    const isLate = reader.partitions.some((partition) => !now.has(partition))
    reader.lateSinceMs = isLate ? (reader.lateSinceMs ?? this.#nowMs) : undefined
    if (obeys) this.#obey(reader)
  }

  #obey(reader: Reader): void {
    const now = new Set(reader.client.partitions)
    for (const partition of reader.partitions) {
      if (now.has(partition)) continue
      const taken = reader.inHand.get(partition)
      if (taken !== undefined) this.history.settle(taken.event, 'release')
      reader.inHand.delete(partition)
      reader.positions.delete(partition)
    }
    reader.owned = reader.client.owned
  }

  async read(reader: Reader): Promise<void> {
    for (const partition of reader.partitions) {
      if (reader.inHand.has(partition)) continue
      const at = reader.positions.get(partition) ?? (await this.#committed(reader, partition))
      if (at === undefined) continue
      reader.positions.set(partition, at)
      const [record] = await this.world.broker.read(TOPIC, partition, at, undefined).catch(() => [])
      if (record === undefined) continue
      const { offset } = record
      const value = Number(record.value)
      const delivered = { topic: TOPIC, partition, offset, value, key: null }
      const event = this.history.deliver(GROUP, reader.client.memberId, delivered, 1)
      this.#note(partition, 'remote')
      reader.inHand.set(partition, { partition, offset, event })
      reader.positions.set(partition, offset + 1)
    }
  }

  /** Where it is to begin; undefined: it is fenced. */
  async #committed({ client }: Reader, partition: number): Promise<number | undefined> {
    const topicId = this.world.broker.describe(TOPIC).id
    const topics = [{ name: TOPIC, topicId, partitionIndexes: [partition] }]
    const { errorCode, offset } = await client.committed({ topics })
    return errorCode === KAFKA_ERRORS.NONE ? Math.max(offset as number, 0) : undefined
  }

  async commit(reader: Reader): Promise<void> {
    for (const { partition, offset, event } of [...reader.inHand.values()]) {
      const partitions = [{ partitionIndex: partition, committedOffset: offset + 1, committedMetadata: '' }]
      const topicId = this.world.broker.describe(TOPIC).id
      const code = await reader.client.commit(0, { topics: [{ name: TOPIC, topicId, partitions }] })
      reader.inHand.delete(partition)
      const isIn = code === KAFKA_ERRORS.NONE
      this.history.settle(event, isIn ? 'ack' : 'release')
      if (isIn) this.history.commit(GROUP, TOPIC, partition, offset + 1)
      else reader.positions.delete(partition)
    }
  }

  #note(partition: number, side: string): void {
    if ((this.#lastSide.get(partition) ?? side) !== side) this.crossings++
    this.#lastSide.set(partition, side)
  }

  // ── time, and the end of it ───────────────────────────────────────────────────────────────────

  async #pass(ms: number): Promise<void> {
    const thenMs = this.#nowMs + ms
    for (const reader of this.readers) {
      const isLost = reader.client.memberEpoch > 0 && reader.heardMs + SESSION_MS <= thenMs
      const isLate = reader.lateSinceMs !== undefined && reader.lateSinceMs + REBALANCE_MS <= thenMs
      if (isLost || isLate) this.#drop(reader)
    }
    await this.world.clock.advance(ms)
  }

  /** Each partition is somebody's, and nobody else's. */
  #observe(): void {
    const owners = new Map<number, string>()
    const claim = (partition: number, who: string): void => {
      expect(owners.get(partition) ?? who, `two have ${partition}`).toBe(who)
      owners.set(partition, who)
    }
    for (const reader of this.readers) for (const p of reader.partitions) claim(p, reader.client.memberId)
    for (const [id, { inHand }] of this.locals)
      for (const { delivery } of inHand) claim(delivery.partition, id)
    const { cursors = [] } = this.world.broker.listGroups().includes(GROUP)
      ? this.world.broker.describeGroup(GROUP)
      : {}
    for (const { owner, partition } of cursors) {
      if (owner !== null && this.locals.has(owner)) claim(partition, owner)
    }
  }

  /** The process dies, and with it its subscribers. Clients go on at the next one, from what is committed. */
  async crash(): Promise<void> {
    for (const reader of this.readers) {
      for (const { event } of reader.inHand.values()) this.history.settle(event, 'release')
      reader.inHand.clear()
      reader.positions.clear()
    }
    for (const { inHand } of this.locals.values()) for (const taken of inHand) taken.isOver = true
    this.locals.clear()
    this.history.crash()
    this.#engine.crash()
    await this.#boot(new ManualClock({ startMs: this.world.clock.now() }))
    const readers = [...this.readers]
    this.readers.clear()
    for (const reader of readers) {
      const { memberId, memberEpoch, owned } = reader.client
      const client = Object.assign(new ModernClient(this.world, { group: GROUP }), {
        memberId,
        memberEpoch,
        owned,
      })
      const next = Object.assign(new Reader(client), { owned: reader.owned })
      next.lateSinceMs = reader.lateSinceMs === undefined ? undefined : this.#nowMs
      next.heardMs = this.#nowMs
      this.readers.add(next)
    }
  }

  /** All do as they should, until everything is settled. */
  async calm(): Promise<void> {
    if (this.locals.size === 0) await this.#subscribe()
    for (let round = 0; round < 400 && !this.#isDone(); round++) {
      for (const local of this.locals.values()) this.#settle(local, true)
      for (const reader of [...this.readers]) {
        await this.beat(reader, true)
        await this.read(reader)
        await this.commit(reader)
      }
      await this.#pass(1_000)
      await this.world.settle()
      this.#observe()
    }
    expect(this.#isDone(), 'all is settled').toBe(true)
    this.history.drained(GROUP)
  }

  #isDone(): boolean {
    const { cursors } = this.world.broker.describeGroup(GROUP)
    return cursors.length === PARTITIONS && cursors.every(({ lag, inFlight }) => lag === 0 && inFlight === 0)
  }
}

const seeds = Array.from({ length: Number(process.env.STORM_SEEDS ?? 15) }, (_, seed) => seed)
const open = new Set<Storm>()
afterEach(async () => {
  for (const storm of open) await storm.world.broker.close({ drainMs: 0 })
  open.clear()
})

it.each(
  [
    ['values by reference', plainDisk],
    ['files', fileDisk],
  ].flatMap(([name, disk]) => seeds.map((seed) => [name, seed, disk] as [string, number, () => Disk])),
)('one owner, one offset, nothing lost, on %s (seed %i)', async (name, seed, disk) => {
  const storm = new Storm(seed, disk())
  open.add(storm)
  await storm.start()
  for (let i = 0; i < STEPS; i++) {
    await storm.step()
    if (name === 'files' && i % 90 === 80) await storm.crash()
  }
  await storm.calm()
  const found = checkHistory(storm.history).filter(({ kind }) => kind !== 'attempts-out-of-bounds')
  expect(found).toEqual([])
  expect(storm.crossings, 'a run in which little happened').toBeGreaterThan(5)
})
