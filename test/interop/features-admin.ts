/** What administrators do. */
import { expect } from 'vitest'
import type { Feature } from './feature.ts'
import type { Trial } from './trial.ts'
import { all, publish, TOPIC, untilAllSeen, valuesOf } from './values.ts'

async function steps(trial: Trial, ...names: string[]): Promise<Map<unknown, unknown>> {
  const { events } = await trial.did('admin', { topic: TOPIC, group: 'shippers', steps: names })
  return new Map(events.map(({ step, result }) => [step, result]))
}

/** A group that has read all seven records, and whose member has left. */
async function consumed(trial: Trial): Promise<void> {
  await trial.broker.createTopic(TOPIC)
  await publish(trial.broker, 0, 7)
  const member = await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 7 })
  await member.kill('SIGTERM')
  expect(trial.broker.describeGroup('shippers').members).toEqual([])
}

export const ADMIN: readonly Feature[] = [
  {
    name: 'topics: list, ends of partitions',
    group: 'admin',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 7)
      const results = await steps(trial, 'list', 'offsets')
      expect(results.get('list')).toContain(TOPIC)
      expect(results.get('offsets')).toEqual([7])
    },
  },
  {
    name: 'topics: create, grow, delete',
    group: 'admin',
    async run(trial) {
      const results = await steps(trial, 'create', 'partitions')
      expect(results.get('partitions')).toBe(5)
      expect(trial.broker.describe(TOPIC).partitions).toHaveLength(5)
      await steps(trial, 'deleteTopic')
      expect(() => trial.broker.describe(TOPIC)).toThrow()
    },
  },
  {
    name: 'topics: describe and alter configs',
    group: 'admin',
    async run(trial) {
      const results = await steps(trial, 'create', 'describeConfig', 'alterConfig')
      expect(results.get('describeConfig')).toBe('3600000')
      expect(results.get('alterConfig')).toBe('7200000')
    },
  },
  {
    name: 'topics: delete records',
    group: 'admin',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 7)
      await steps(trial, 'deleteRecords')
      expect(trial.broker.describe(TOPIC).partitions[0]).toMatchObject({ start: 4, high: 7 })
    },
  },
  {
    name: 'groups: list',
    group: 'admin',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 7)
      const member = trial.run('consume', { topic: TOPIC, group: 'shippers' })
      await untilAllSeen(trial, [member], 0, 7)
      expect((await steps(trial, 'groups')).get('groups')).toContain('shippers')
    },
  },
  {
    name: 'groups: describe and delete',
    group: 'admin',
    async run(trial) {
      await consumed(trial)
      const results = await steps(trial, 'describeGroup', 'deleteGroup')
      expect(results.get('describeGroup')).toEqual({
        state: expect.stringMatching(/^empty$/i),
        members: 0,
      })
      expect(trial.broker.listGroups()).not.toContain('shippers')
    },
  },
  {
    name: 'groups: list and alter offsets',
    group: 'admin',
    async run(trial) {
      await consumed(trial)
      expect((await steps(trial, 'groupOffsets', 'alterOffsets')).get('groupOffsets')).toEqual([7])
      // Whoever comes next goes on there.
      const next = await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 4 })
      expect(valuesOf([next])).toEqual(all(3, 7))
    },
  },
]
