/** Members of groups, that come, go and die, and where they go on. */
import { expect } from 'vitest'
import type { Driver } from './driver.ts'
import type { Feature } from './feature.ts'
import type { Trial } from './trial.ts'
import { all, publish, TOPIC, text, untilAllSeen, valuesOf } from './values.ts'

const COUNT = 100

function consumes(members: number): Feature['run'] {
  return async (trial) => {
    await trial.broker.createTopic(TOPIC, { partitions: 6 })
    await publish(trial.broker, 0, COUNT)
    const drivers = await groupOf(trial, members)
    await untilAllSeen(trial, drivers, 0, COUNT)
    // Everything that comes is seen, each partition to its end.
    await publish(trial.broker, COUNT, 2 * COUNT)
    await untilAllSeen(trial, drivers, 0, 2 * COUNT)
    const last = new Map<number, number>()
    for (const { partition, offset } of drivers.flatMap(({ records }) => records)) {
      last.set(partition, Math.max(last.get(partition) ?? -1, offset))
    }
    for (const { partition, high } of trial.broker.describe(TOPIC).partitions) {
      if (high > 0) expect(last.get(partition)).toBe(high - 1)
    }
  }
}

/** The first of so many members goes, and the others go on with all partitions. */
function losesOne(signal: 'SIGKILL' | 'SIGTERM', members: number, sessionMs: number): Feature['run'] {
  return async (trial) => {
    await trial.broker.createTopic(TOPIC, { partitions: 6 })
    await publish(trial.broker, 0, COUNT)
    const drivers = await groupOf(trial, members, { sessionMs })
    await untilAllSeen(trial, drivers, 0, COUNT)
    await drivers[0]?.kill(signal)
    await publish(trial.broker, COUNT, 2 * COUNT)
    await untilAllSeen(trial, drivers.slice(1), COUNT, 2 * COUNT)
  }
}

/** Members of a group, each with partitions of its own: six in all. */
export async function groupOf(trial: Trial, members: number, args: object = {}): Promise<Driver[]> {
  const drivers = Array.from({ length: members }, () =>
    trial.run('consume', { topic: TOPIC, group: 'shippers', ...args }),
  )
  await trial.drivers.until('six partitions among all members', () => {
    const assigned = drivers.map((driver) => driver.assigned)
    const partitions = assigned.flat().sort((a, b) => a - b)
    return assigned.every(({ length }) => length > 0) && partitions.join() === '0,1,2,3,4,5'
  })
  return drivers
}

const CLASSIC: readonly Feature[] = [
  ...[1, 3, 5].map(
    (members): Feature => ({
      name: members === 1 ? 'group of one' : `group of ${members}`,
      group: 'groups',
      run: consumes(members),
    }),
  ),
  { name: 'group of 3 on three nodes', group: 'groups', server: { nodes: 3 }, run: consumes(3) },
  {
    name: 'commit and resume',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, COUNT)
      await trial.did('consume', { topic: TOPIC, group: 'shippers', count: COUNT })
      await publish(trial.broker, COUNT, COUNT + 20)
      const second = await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 20 })
      expect(valuesOf([second])).toEqual(all(COUNT, COUNT + 20))
    },
  },
  {
    name: 'offsets pass to another client, and to a group in process',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 40)
      await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 40 })
      await publish(trial.broker, 40, 60)
      if (trial.hasOther) {
        const other = await trial.otherDid('consume', { topic: TOPIC, group: 'shippers', count: 20 })
        expect(valuesOf([other])).toEqual(all(40, 60))
        await publish(trial.broker, 60, 80)
      }
      const seen: string[] = []
      const note = { onRecord: (record: { value: unknown }) => void seen.push(text(record.value)) }
      await trial.broker.subscribe(TOPIC, ({ value }: { value: unknown }) => void note.onRecord({ value }), {
        id: 'one',
        group: 'shippers',
      })
      const wanted = trial.hasOther ? all(60, 80) : all(40, 60)
      await trial.drivers.until('records in process', () => seen.length >= wanted.length)
      expect(seen).toEqual(wanted)
    },
  },
  {
    name: 'a member joins',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC, { partitions: 6 })
      await publish(trial.broker, 0, COUNT)
      const first = trial.run('consume', { topic: TOPIC, group: 'shippers' })
      await untilAllSeen(trial, [first], 0, COUNT)
      const second = trial.run('consume', { topic: TOPIC, group: 'shippers' })
      await trial.drivers.until('partitions for both', () => {
        return first.assigned.length === 3 && second.assigned.length === 3
      })
      await publish(trial.broker, COUNT, 2 * COUNT)
      await untilAllSeen(trial, [first, second], COUNT, 2 * COUNT)
      expect(second.records.length).toBeGreaterThan(0)
    },
  },
  {
    name: 'a member is killed',
    group: 'groups',
    run: losesOne('SIGKILL', 3, 3_000),
  },
  {
    name: 'a member leaves',
    group: 'groups',
    // Longer than is waited for: who leaves must say so.
    run: losesOne('SIGTERM', 2, 90_000),
  },
  {
    name: 'static membership: a member returns, the other is not disturbed',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC, { partitions: 6 })
      const args = { topic: TOPIC, group: 'shippers', sessionMs: 20_000 }
      const first = trial.run('consume', { ...args, instance: 'first' })
      await trial.drivers.until('all partitions at one', () => first.assigned.length === 6)
      const second = trial.run('consume', { ...args, instance: 'second' })
      await trial.drivers.until('partitions for both', () => {
        return first.assigned.length === 3 && second.assigned.length === 3
      })
      const [told, had] = [assignments(first).length, second.assigned]
      await second.kill('SIGKILL')
      const back = trial.run('consume', { ...args, instance: 'second' })
      await trial.drivers.until('its partitions again', () => back.assigned.length === 3)
      expect([...back.assigned].sort()).toEqual([...had].sort())
      await publish(trial.broker, 0, COUNT)
      await untilAllSeen(trial, [first, back], 0, COUNT)
      expect(assignments(first)).toHaveLength(told)
    },
  },
  {
    name: 'cooperative rebalance: a member keeps what it keeps',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC, { partitions: 6 })
      const args = { topic: TOPIC, group: 'shippers', cooperative: true }
      const first = trial.run('consume', args)
      await trial.drivers.until('all partitions at one', () => first.assigned.length === 6)
      const told = assignments(first).length
      const second = trial.run('consume', args)
      await trial.drivers.until('partitions for both', () => {
        return first.assigned.length === 3 && second.assigned.length === 3
      })
      // Had it given up everything for a moment, it would have said so.
      for (const partitions of assignments(first).slice(told)) {
        expect(partitions).toEqual(expect.arrayContaining([...first.assigned]))
      }
      await publish(trial.broker, 0, COUNT)
      await untilAllSeen(trial, [first, second], 0, COUNT)
    },
  },
]

/** Everything that it was assigned, in turn; told the same again, it was not disturbed. */
function assignments({ events }: Driver): (readonly number[])[] {
  const told = events.flatMap(({ assigned }) => (assigned === undefined ? [] : [assigned]))
  return told.filter((partitions, i) => partitions.join() !== told[i - 1]?.join())
}

/** KIP-848: members are given partitions, and give them up, one by one, while the others read on. */
const NEW_GROUPS: Feature = {
  name: 'groups, new protocol (KIP-848)',
  group: 'groups',
  async run(trial) {
    await trial.broker.createTopic(TOPIC, { partitions: 6 })
    await publish(trial.broker, 0, COUNT)
    const protocol = 'consumer'
    const drivers = await groupOf(trial, 3, { protocol })
    expect(trial.broker.describeGroup('shippers')).toMatchObject({ kind: 'consumer' })
    await untilAllSeen(trial, drivers, 0, COUNT)
    await drivers[0]?.kill('SIGTERM')
    await publish(trial.broker, COUNT, 2 * COUNT)
    await untilAllSeen(trial, drivers.slice(1), COUNT, 2 * COUNT)
    await drivers[1]?.kill('SIGKILL')
    await publish(trial.broker, 2 * COUNT, 3 * COUNT)
    await untilAllSeen(trial, drivers.slice(2), 2 * COUNT, 3 * COUNT)
    await drivers[2]?.kill('SIGTERM')
    await trial.drivers.until('nobody in the group', () => {
      return trial.broker.describeGroup('shippers').members.length === 0
    })
    // What they committed is where others go on, also of the older protocol.
    await publish(trial.broker, 3 * COUNT, 3 * COUNT + 20)
    const next = await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 20 })
    expect(valuesOf([next]).sort()).toEqual(all(3 * COUNT, 3 * COUNT + 20).sort())
  },
}

export const GROUPS: readonly Feature[] = [...CLASSIC, NEW_GROUPS]
