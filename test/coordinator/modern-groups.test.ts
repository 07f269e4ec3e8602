/** Modern groups by name, beside classic ones and those of this process: whose the name is, and what outlives what. */
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import type { HeartbeatRequest, HeartbeatResult } from '../../src/coordinator/modern-requests.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { fileDisk, plainDisk } from '../support/disks.ts'
import { Machine } from '../support/durable.ts'
import { codeOf, World, watch } from '../support/world.ts'
import { commit, committed, joined, left, NOBODY } from './group-kit.ts'

const DAY_MS = 86_400_000

function beat(
  broker: Broker,
  name: string,
  said: Partial<HeartbeatRequest> = {},
): Promise<HeartbeatResult> | HeartbeatResult {
  const joins = (said.epoch ?? 0) === 0
  return broker.parts.groups.consumerHeartbeat(name, {
    memberId: 'a',
    epoch: 0,
    instanceId: null,
    rackId: null,
    clientId: 'client',
    clientHost: '127.0.0.1',
    rebalanceTimeoutMs: joins ? 60_000 : -1,
    topicNames: joins ? ['orders'] : null,
    topicPattern: null,
    assignor: null,
    owned: joins ? new Set() : null,
    ...said,
  })
}

async function withTopic(world = new World()) {
  const topic = await world.broker.createTopic('orders', { partitions: 2 })
  return { world, topic, broker: world.broker, groups: world.broker.parts.groups }
}

const who = (memberId: string, generation: number) => ({ memberId, instanceId: null, generation })

describe('a modern group', () => {
  it('comes to be with its first member; who was in one that is gone is to join', async () => {
    const { broker } = await withTopic()
    expect(await beat(broker, 'g', { epoch: 3 })).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    expect(broker.listGroups()).toEqual([])
    expect(await beat(broker, 'g')).toMatchObject({ error: 'NONE', epoch: 1 })
    expect(broker.listGroups()).toEqual(['g'])
  })

  it.each(['', 'odradek.reader.alice'])('has another name than %j', async (name) => {
    const { broker } = await withTopic()
    expect(await beat(broker, name)).toMatchObject({ error: 'INVALID_GROUP_ID' })
  })

  it('is told as it is configured how often to be heard of, and for how long not', async () => {
    const { world, broker, groups } = await withTopic()
    groups.configure({ consumerHeartbeatIntervalMs: 10, consumerSessionTimeoutMs: 50 })
    expect(await beat(broker, 'g')).toMatchObject({ heartbeatIntervalMs: 10 })
    await world.clock.advance(50)
    expect(await beat(broker, 'g', { epoch: 1 })).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
  })

  it('hears of topics that come, grow and go', async () => {
    const { broker } = await withTopic()
    await beat(broker, 'g', { topicNames: ['orders', 'later'] })
    const owned = new Set<string>()
    await broker.createTopic('later')
    expect((await beat(broker, 'g', { epoch: 1, owned })).assigned?.size).toBe(3)
    await broker.alterTopic('later', { partitions: 3 })
    expect((await beat(broker, 'g', { epoch: 2, owned })).assigned?.size).toBe(5)
    await broker.deleteTopic('orders')
    expect((await beat(broker, 'g', { epoch: 3, owned })).assigned?.size).toBe(3)
  })

  it('is described in this process: who is there, who reads what, and how far they have come', async () => {
    const { broker, topic } = await withTopic()
    for (let i = 0; i < 4; i++) await topic.publish(i, { partition: 1 })
    await commit(broker, 'g', 'orders', 1, 3)
    await beat(broker, 'g')
    expect(broker.describeGroup('g')).toMatchObject({
      kind: 'consumer',
      generation: 1,
      members: [{ id: 'a', inFlight: 0 }],
      cursors: [{ topic: 'orders', partition: 1, committed: 3, lag: 1, owner: 'a' }],
    })
  })

  it('is deleted once it is empty, and not before', async () => {
    const { broker } = await withTopic()
    await beat(broker, 'g')
    expect(await codeOf(broker.deleteGroup('g'))).toBe('GROUP_NOT_EMPTY')
    await beat(broker, 'g', { epoch: -1 })
    await broker.deleteGroup('g')
    expect(broker.listGroups()).toEqual([])
  })

  it('is forgotten with its offsets, so long after it became empty', async () => {
    const { world, broker } = await withTopic(new World({ offsetRetentionMs: DAY_MS }))
    broker.parts.groups.configure({ consumerSessionTimeoutMs: 3 * DAY_MS })
    await beat(broker, 'g')
    await broker.parts.groupOffsets.commit('g', [
      { topicId: broker.describe('orders').id, partition: 0, offset: 0, metadata: '', epoch: -1 },
    ])
    await world.clock.advance(2 * DAY_MS)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 0 })
    await beat(broker, 'g', { epoch: -1 })
    await world.clock.advance(DAY_MS / 2)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 0 })
    await world.clock.advance(DAY_MS)
    expect(committed(broker, 'g', 'orders')).toBeUndefined()
    expect(broker.listGroups()).toEqual([])
  })

  it('ends with the broker: nobody is taken any more, and nothing is due', async () => {
    const { world, broker, groups } = await withTopic()
    await beat(broker, 'g')
    await broker.close()
    expect(await beat(broker, 'g', { epoch: 1 })).toMatchObject({ error: 'COORDINATOR_NOT_AVAILABLE' })
    expect(groups.checkFetch('g', 'a', 1)).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(groups.checkCommit('g', who('a', 1))).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(world.clock.pending).toBe(0)
  })
})

describe('a name', () => {
  it('that classic members have is closed, and open once they have left; numbers go on', async () => {
    const { broker, groups } = await withTopic()
    const member = await joined(broker, 'g')
    expect(await beat(broker, 'g')).toMatchObject({ error: 'GROUP_ID_NOT_FOUND' })
    expect(await beat(broker, 'g', { epoch: 1 })).toMatchObject({ error: 'GROUP_ID_NOT_FOUND' })
    left(broker, 'g', member)
    await commit(broker, 'g', 'orders', 0, 5)
    expect(await beat(broker, 'g', { epoch: 1 })).toMatchObject({ error: 'GROUP_ID_NOT_FOUND' })
    expect(await beat(broker, 'g')).toMatchObject({ error: 'NONE', epoch: 3 })
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 5 })
    expect(groups.get('g')).toBeUndefined()
    expect(broker.listGroups()).toEqual(['g'])
  })

  it('that modern members have is closed to classic ones, and open once they have left', async () => {
    const { broker, groups } = await withTopic()
    await beat(broker, 'g')
    expect(await joined(broker, 'g')).toMatchObject({ error: 'INCONSISTENT_GROUP_PROTOCOL' })
    expect(groups.heartbeat('g', who('a', 1))).toBe('UNKNOWN_MEMBER_ID')
    expect(groups.leave('g', [who('a', 1)])).toEqual(['UNKNOWN_MEMBER_ID'])
    await beat(broker, 'g', { epoch: -1 })
    expect(await joined(broker, 'g')).toMatchObject({ error: 'NONE', generation: 3 })
    expect(groups.modern('g')).toBeUndefined()
    expect(await beat(broker, 'g')).toMatchObject({ error: 'GROUP_ID_NOT_FOUND' })
  })

  it('that subscribers of this process share is closed, and open once they have left, with its place', async () => {
    const { world, broker, topic } = await withTopic()
    const member = await topic.subscribe(() => {}, { group: 'g', from: 'earliest' })
    for (let i = 0; i < 3; i++) await topic.publish(i, { partition: 0 })
    await world.settle()
    expect(await beat(broker, 'g')).toMatchObject({ error: 'GROUP_ID_NOT_FOUND' })
    await member.close()
    expect(await beat(broker, 'g')).toMatchObject({ error: 'NONE', epoch: 1 })
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 3 })
    expect(broker.describe('orders').readers).toEqual([])
  })

  it('that modern members have is closed to subscribers of this process, and open once they have left', async () => {
    const { world, broker, topic } = await withTopic()
    for (let i = 0; i < 4; i++) await topic.publish(i, { partition: 0 })
    await beat(broker, 'g')
    expect(await codeOf(topic.subscribe(() => {}, { group: 'g' }))).toBe('INCONSISTENT_GROUP')
    await beat(broker, 'g', { epoch: -1 })
    await commit(broker, 'g', 'orders', 0, 2)
    const seen: unknown[] = []
    await topic.subscribe(({ value }) => void seen.push(value), { group: 'g', from: 'earliest' })
    await world.settle()
    expect(seen).toEqual([2, 3])
  })
})

describe('commits', () => {
  it('are of members in their epoch, and of nobody while there are none', async () => {
    const { broker, groups } = await withTopic()
    await beat(broker, 'g')
    expect(groups.checkCommit('g', who('a', 1))).toBe('NONE')
    expect(groups.checkCommit('g', who('a', 2))).toBe('STALE_MEMBER_EPOCH')
    expect(groups.checkCommit('g', NOBODY)).toBe('UNKNOWN_MEMBER_ID')
    expect(groups.checkFetch('g', 'a', 0)).toBe('STALE_MEMBER_EPOCH')
    expect(groups.checkFetch('another', 'a', 0)).toBe('NONE')
    await beat(broker, 'g', { epoch: -1 })
    expect(groups.checkCommit('g', NOBODY)).toBe('NONE')
    expect(groups.modern('g')).toBeDefined()
  })
})

describe.each([
  ['values by reference', plainDisk],
  ['files', fileDisk],
])('after a restart, on %s', (_, disk) => {
  it('an empty one is there, and its epochs go on', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    await first.broker.createTopic('orders')
    await beat(first.broker, 'g')
    await beat(first.broker, 'g', { epoch: -1 })
    await first.broker.close()
    const { broker } = await machine.boot()
    const { groups } = broker.parts
    expect(groups.modern('g')).toMatchObject({ state: 'Empty', epoch: 2 })
    expect(await beat(broker, 'g', { epoch: 1 })).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    expect(groups.checkCommit('g', who('a', 1))).toBe('UNKNOWN_MEMBER_ID')
    expect(await beat(broker, 'g')).toMatchObject({ error: 'NONE', epoch: 3 })
  })

  it('by a crash, no epoch comes again that somebody was told', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    await first.broker.createTopic('orders')
    let told = 0
    for (const memberId of ['a', 'b', 'c']) {
      told = (await beat(first.broker, 'g', { memberId })).epoch
    }
    // This one is on its way to the disk, and is told nobody.
    let go = (): void => {}
    machine.beforePut = () =>
      new Promise((resolve) => {
        go = resolve
      })
    const answer = watch(Promise.resolve(beat(first.broker, 'g', { memberId: 'd' })))
    await first.settle()
    expect(answer.state).toBe('waiting')
    const other = watch(Promise.resolve(beat(first.broker, 'g', { memberId: 'c', epoch: told })))
    await first.settle()
    expect(other.state).toBe('waiting')
    first.crash()
    machine.beforePut = () => {}
    go()
    const { broker } = await machine.boot()
    expect(broker.parts.groups.modern('g')?.epoch).toBe(told)
    expect((await beat(broker, 'g', { memberId: 'c' })).epoch).toBeGreaterThan(told)
  })

  it('it is of the kind that it was last', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    await first.broker.createTopic('orders')
    await beat(first.broker, 'classic')
    await beat(first.broker, 'classic', { epoch: -1 })
    await joined(first.broker, 'classic')
    left(first.broker, 'modern', await joined(first.broker, 'modern'))
    await beat(first.broker, 'modern')
    await first.broker.close()
    const { groups } = (await machine.boot()).broker.parts
    expect(groups.get('classic')).toMatchObject({ generation: 3 })
    expect(groups.modern('modern')).toMatchObject({ epoch: 3 })
  })
})

it('refuses whoever changes a group that cannot be stored, and raises it', async () => {
  const machine = new Machine(plainDisk())
  const world = await machine.boot()
  await world.broker.createTopic('orders')
  machine.beforePut = () => {
    throw new OdradekError('STORAGE_ERROR', 'the disk failed')
  }
  expect(await beat(world.broker, 'g')).toMatchObject({ error: 'COORDINATOR_NOT_AVAILABLE' })
  expect(world.raised('error').map(({ context }) => context)).toEqual(['storing group "g"'])
  machine.beforePut = () => {}
  expect(await beat(world.broker, 'g')).toMatchObject({ error: 'NONE', epoch: 1 })
  world.crash()
  expect((await machine.boot()).broker.parts.groups.modern('g')?.epoch).toBe(1)
})
