/** What a client has to live through: a server that is started anew, a topic that is another one under the same name. */
import { expect } from 'vitest'
import type { Feature } from './feature.ts'
import { groupOf } from './features-groups.ts'
import type { Trial } from './trial.ts'
import { all, ended, publish, TOPIC, text, untilAllSeen, valuesOf } from './values.ts'

const COUNT = 60

/** Produces and consumes while the server goes and comes back; answers what is in the log then. */
async function throughRestart(trial: Trial, idempotent: boolean): Promise<string[]> {
  await trial.broker.createTopic(TOPIC, { partitions: 2 })
  const member = trial.run('consume', { topic: TOPIC, group: 'shippers' })
  const producer = trial.run('produce', { topic: TOPIC, count: COUNT, prefix: 'v', idempotent, everyMs: 50 })
  await trial.drivers.until('a third of the records', () => ended(trial.broker) >= COUNT / 3)
  await trial.restart()
  await trial.drivers.done(producer)
  await untilAllSeen(trial, [member], 0, COUNT)
  const values: string[] = []
  for (const { partition } of trial.broker.describe(TOPIC).partitions) {
    for (const { value } of await trial.broker.read(TOPIC, partition)) values.push(text(value))
  }
  return values
}

function byNumber(a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1))
}

/** Members that are there when the server goes go on when it is back, from what they committed. */
function goesOn(protocol: 'classic' | 'consumer'): Feature['run'] {
  return async (trial) => {
    await trial.broker.createTopic(TOPIC, { partitions: 6 })
    await publish(trial.broker, 0, COUNT)
    const drivers = await groupOf(trial, 2, { protocol })
    await untilAllSeen(trial, drivers, 0, COUNT)
    await trial.drivers.until('everything committed', () => committed(trial) === COUNT)
    await trial.restart()
    await publish(trial.broker, COUNT, 2 * COUNT)
    await untilAllSeen(trial, drivers, COUNT, 2 * COUNT)
    const before = new Set(all(0, COUNT))
    expect(valuesOf(drivers).filter((value) => before.has(value))).toHaveLength(COUNT)
    await trial.drivers.until('both in the group', () => {
      return trial.broker.describeGroup('shippers').members.length === drivers.length
    })
  }
}

function committed({ broker }: Trial): number {
  const { cursors } = broker.describeGroup('shippers')
  return cursors.reduce((sum, { committed }) => sum + committed, 0)
}

export const LASTING: readonly Feature[] = [
  {
    name: 'a server on disk starts anew: nothing is lost',
    group: 'lasting',
    server: { durable: true },
    async run(trial) {
      expect(new Set(await throughRestart(trial, false))).toEqual(new Set(all(0, COUNT)))
    },
  },
  {
    name: 'a server on disk starts anew, idempotent: nothing is there twice',
    group: 'lasting',
    server: { durable: true },
    async run(trial) {
      expect((await throughRestart(trial, true)).sort(byNumber)).toEqual(all(0, COUNT))
    },
  },
  {
    name: 'members go on after the server on disk started anew',
    group: 'lasting',
    server: { durable: true },
    run: goesOn('classic'),
  },
  {
    name: 'members go on after the server on disk started anew, new protocol (KIP-848)',
    group: 'lasting',
    server: { durable: true },
    run: goesOn('consumer'),
  },
  {
    name: 'a topic is deleted and made anew',
    group: 'lasting',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 20)
      const member = trial.run('consume', { topic: TOPIC, group: 'shippers' })
      await untilAllSeen(trial, [member], 0, 20)
      await trial.broker.deleteTopic(TOPIC)
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 20, 30)
      await untilAllSeen(trial, [member], 20, 30)
    },
  },
]
