/**
 * A client and subscribers of this process in one consumer group: the client's library knows nothing of it, and has its
 * share of the partitions, at the group's offsets, whoever comes, leaves or is killed.
 */
import { afterEach, describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/index.ts'
import { CLIENTS } from './clients.ts'
import type { Driver } from './driver.ts'
import { Trial } from './trial.ts'
import { all, publish, TOPIC, text } from './values.ts'

const GROUP = 'shippers'
const PARTITIONS = 6

class Group {
  readonly trial: Trial
  /** What subscribers saw, in order. */
  readonly seen: string[] = []
  readonly drivers: Driver[] = []

  constructor(trial: Trial) {
    this.trial = trial
  }

  subscribe(id: string): Promise<Subscription> {
    return this.trial.broker.subscribe(
      TOPIC,
      ({ value }: { value: unknown }) => void this.seen.push(text(value)),
      {
        id,
        group: GROUP,
        assignment: 'sticky',
        from: 'earliest',
      },
    )
  }

  consume(): Driver {
    const driver = this.trial.run('consume', { topic: TOPIC, group: GROUP, protocol: 'consumer' })
    this.drivers.push(driver)
    return driver
  }

  get values(): string[] {
    const remote = this.drivers.flatMap(({ records }) => records.map(({ value }) => value as string))
    return [...this.seen, ...remote]
  }

  /** Partitions by owner: what the broker says. */
  get owned(): ReadonlyMap<string | null, number> {
    const owned = new Map<string | null, number>()
    for (const { owner } of this.trial.broker.describeGroup(GROUP).cursors) {
      owned.set(owner, (owned.get(owner) ?? 0) + 1)
    }
    return owned
  }

  async shares(driver: Driver, mine: number, of: Readonly<Record<string, number>>): Promise<void> {
    await this.trial.drivers.until(`${mine} partitions at the client, ${JSON.stringify(of)} here`, () => {
      const isHere = Object.entries(of).every(([id, count]) => (this.owned.get(id) ?? 0) === count)
      return isHere && driver.assigned.length === mine
    })
  }

  async published(from: number, to: number): Promise<void> {
    await publish(this.trial.broker, from, to)
    await this.trial.drivers.until(`all of ${to} records`, () => new Set(this.values).size === to)
    expect([...new Set(this.values)].sort()).toEqual([...all(0, to)].sort())
  }
}

const open = new Set<Trial>()
afterEach(async () => {
  for (const trial of open) await trial.close()
  open.clear()
})

describe.each(CLIENTS.filter(({ id }) => ['rdkafka', 'java', 'platformatic'].includes(id)))(
  '$name',
  (client) => {
    it.skipIf(client.missing() !== undefined)(
      'shares a group with subscribers of this process',
      { timeout: 120_000 },
      async () => {
        const trial = await Trial.open(client, undefined, {})
        open.add(trial)
        await trial.broker.createTopic(TOPIC, { partitions: PARTITIONS })
        const group = new Group(trial)
        const a = await group.subscribe('a')
        await group.published(0, 60)

        const first = group.consume()
        await group.shares(first, 3, { a: 3 })
        await group.published(60, 160)
        expect(first.records.length).toBeGreaterThan(0)

        const b = await group.subscribe('b')
        await group.shares(first, 2, { a: 2, b: 2 })
        await group.published(160, 260)
        // Where a client commits before it gives up, nothing is seen twice. One does not wait for that, and reads again.
        const isExact = client.id !== 'platformatic'
        if (isExact) expect(group.values.length).toBe(260)

        await first.kill('SIGKILL')
        await trial.drivers.until(
          'partitions here alone',
          () => group.owned.get('a') === 3 && group.owned.get('b') === 3,
        )
        await group.published(260, 300)

        const second = group.consume()
        await group.shares(second, 2, { a: 2, b: 2 })
        await a.close()
        await b.close()
        await group.shares(second, PARTITIONS, {})
        await group.published(300, 360)
        // What a subscriber has settled never comes again.
        const values = second.records.map(({ value }) => value as string)
        expect([...new Set(values)].sort()).toEqual(all(300, 360).sort())
        if (isExact) expect(values.length).toBe(60)
      },
    )
  },
)
