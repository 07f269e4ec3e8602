/** What clients of groups hear when the disk fails, and what the broker is told of it. */
import { expect, it } from 'vitest'
import type { Meta } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { deleteGroups } from '../../src/wire/messages/42-delete-groups.ts'
import { offsetDelete } from '../../src/wire/messages/47-offset-delete.ts'
import { changedEngine } from '../support/engines.ts'
import { GroupClient } from '../support/group-client.ts'
import { KafkaWorld } from '../support/kafka.ts'

/** A broker whose store takes nothing more once `failure` is set. `durable`: it is one that outlives the process. */
function failing(durable = false) {
  const engine = memoryEngine({ clock: new ManualClock() })
  const disk: { failure: Error | undefined } = { failure: undefined }
  const meta: Meta = {
    get: (key) => engine.meta.get(key),
    scan: (prefix) => engine.meta.scan(prefix),
    put: (changes) => (disk.failure === undefined ? engine.meta.put(changes) : Promise.reject(disk.failure)),
  }
  return { disk, world: new KafkaWorld({ engine: changedEngine(engine, { meta, durable }) }) }
}

const FAILED = new OdradekError('STORAGE_ERROR', 'the disk failed')

it('a commit, a deletion and a deletion of offsets that could not be stored may be tried again', async () => {
  const { disk, world } = failing()
  await world.broker.createTopic('orders')
  const client = new GroupClient(world)
  expect(await client.commit('orders', 0, 1)).toBe(KAFKA_ERRORS.NONE)
  disk.failure = FAILED
  const again = KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE
  expect(await client.commit('orders', 0, 2)).toBe(again)
  const topics = [{ name: 'orders', partitions: [{ partitionIndex: 0 }] }]
  expect(await world.send(offsetDelete, 0, { groupId: 'g', topics })).toMatchObject({ errorCode: again })
  const deleted = await world.send(deleteGroups, 2, { groupsNames: ['g'] })
  expect(deleted.results).toEqual([{ groupId: 'g', errorCode: again }])
})

it('what is no failure of the disk is ours, and no answer', async () => {
  const { disk, world } = failing()
  await world.broker.createTopic('orders')
  disk.failure = new TypeError('a mistake')
  await expect(new GroupClient(world).commit('orders', 0, 1)).rejects.toThrow('a mistake')
})

it('nobody is told of a generation that could not be stored, and the broker raises it', async () => {
  const { disk, world } = failing(true)
  await world.broker.createTopic('orders')
  const client = new GroupClient(world)
  await client.joinAll()
  disk.failure = FAILED
  const again = KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE
  expect(await client.sync([[client.memberId, [['orders', [0]]]]])).toMatchObject({ errorCode: again })
  expect((await client.leave()).members).toMatchObject([{ errorCode: again }])
  await world.settle()
  expect(world.raised('error').map(({ context }) => context)).toEqual([
    'storing group "g"',
    'storing group "g"',
  ])
  disk.failure = undefined
  expect(await new GroupClient(world).joinAll()).toMatchObject({ errorCode: 0, generationId: 3 })
})

it('a name that changes hands while the disk fails does so, and the broker raises it', async () => {
  const { disk, world } = failing(true)
  await world.broker.createTopic('orders')
  const client = new GroupClient(world)
  await client.joinAll()
  await client.leave()
  disk.failure = FAILED
  await world.broker
    .topic('orders')
    .subscribe(() => {}, { group: 'g', from: 'latest' })
    .catch(() => undefined)
  await world.settle()
  expect(world.raised('error').map(({ context }) => context)).toContain('forgetting group "g"')
})

it('what expiry, a topic that goes and a name that changes hands could not store is raised', async () => {
  const { disk, world } = failing()
  const topic = await world.broker.createTopic('orders')
  await world.broker.createTopic('others')
  await new GroupClient(world).commit('orders', 0, 1)
  await (await topic.subscribe(() => {}, { group: 'mine' })).close()
  disk.failure = FAILED
  await new GroupClient(world, { group: 'mine' }).join()
  await world.clock.advance(8 * 86_400_000)
  await world.broker.deleteTopic('others').catch(() => undefined)
  await world.settle()
  const raised = new Set(world.raised('error').map(({ context }) => context))
  expect(raised).toContain('storing the place of "mine"')
  expect(raised).toContain('expiring offsets of groups')
  expect(raised).toContain('forgetting offsets in "others"')
})
