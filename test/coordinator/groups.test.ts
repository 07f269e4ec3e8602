/** Groups by name: one kind at a time, from their first join or commit until nothing is left of them. */
import { describe, expect, it } from 'vitest'
import { fileDisk, plainDisk } from '../support/disks.ts'
import { Machine } from '../support/durable.ts'
import { codeOf, codeThrown, World, watch } from '../support/world.ts'
import { protocol } from './classic-kit.ts'
import { commit, committed, joined, left, NOBODY, stable } from './group-kit.ts'

async function withTopic() {
  const world = new World()
  const topic = await world.broker.createTopic('orders', { partitions: 2 })
  return { world, topic, broker: world.broker, groups: world.broker.parts.groups }
}

const who = (memberId: string, generation: number) => ({ memberId, instanceId: null, generation })

describe('a group that is not there', () => {
  it('comes to be with a member that has no id, and knows nobody else', async () => {
    const { broker, groups } = await withTopic()
    expect(await joined(broker, 'g', { memberId: 'a stranger' })).toMatchObject({
      error: 'UNKNOWN_MEMBER_ID',
      memberId: 'a stranger',
    })
    expect(groups.heartbeat('g', who('a', 1))).toBe('UNKNOWN_MEMBER_ID')
    expect(groups.leave('g', [who('a', 1), who('b', 1)])).toEqual(['UNKNOWN_MEMBER_ID', 'UNKNOWN_MEMBER_ID'])
    expect(
      groups.sync('g', {
        ...who('a', 1),
        protocolType: null,
        protocolName: null,
        assignments: new Map(),
        signal: new AbortController().signal,
      }),
    ).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    expect(broker.listGroups()).toEqual([])
    expect(await joined(broker, 'g')).toMatchObject({ error: 'NONE', generation: 1 })
    expect(broker.listGroups()).toEqual(['g'])
  })

  it('comes to be with a commit of nobody, and with no other', async () => {
    const { broker, groups } = await withTopic()
    expect(groups.checkCommit('g', who('a', 3))).toBe('GROUP_ID_NOT_FOUND')
    expect(groups.has('g')).toBe(false)
    expect(await commit(broker, 'g', 'orders', 0, 5)).toBe('NONE')
    expect(groups.has('g')).toBe(true)
  })

  it.each(['', 'odradek.reader.alice'])('has another name than %j', async (name) => {
    const { broker, groups } = await withTopic()
    expect(await joined(broker, name, { memberId: 'x' })).toMatchObject({ error: 'INVALID_GROUP_ID' })
    expect(groups.heartbeat(name, who('a', 1))).toBe('INVALID_GROUP_ID')
    expect(groups.leave(name, [who('a', 1)])).toEqual(['INVALID_GROUP_ID'])
    expect(
      groups.sync(name, {
        ...who('a', 1),
        protocolType: null,
        protocolName: null,
        assignments: new Map(),
        signal: new AbortController().signal,
      }),
    ).toMatchObject({ error: 'INVALID_GROUP_ID' })
    if (name !== '') expect(groups.checkCommit(name, NOBODY)).toBe('INVALID_GROUP_ID')
  })

  it.each([5_999, 1_800_001])('takes no session timeout of %i ms', async (sessionTimeoutMs) => {
    const { broker } = await withTopic()
    expect(await joined(broker, 'g', { sessionTimeoutMs })).toMatchObject({
      error: 'INVALID_SESSION_TIMEOUT',
    })
    expect(broker.listGroups()).toEqual([])
  })

  it('takes shorter sessions where it is told to', async () => {
    const { broker, groups } = await withTopic()
    groups.configure({ minSessionTimeoutMs: 10 })
    expect(await joined(broker, 'g', { sessionTimeoutMs: 10 })).toMatchObject({ error: 'NONE' })
  })

  it('does not come to be for a client that is gone', async () => {
    const { broker, groups } = await withTopic()
    expect(await joined(broker, 'g', { signal: AbortSignal.abort() })).toBeNull()
    expect(
      groups.sync('g', {
        ...who('a', 1),
        protocolType: null,
        protocolName: null,
        assignments: new Map(),
        signal: AbortSignal.abort(),
      }),
    ).toBeNull()
    expect(broker.listGroups()).toEqual([])
  })
})

describe('a name', () => {
  it('of a group of this process that has members is closed to others', async () => {
    const { broker, topic, groups } = await withTopic()
    const member = await topic.subscribe(() => {}, { group: 'g' })
    expect(await joined(broker, 'g')).toMatchObject({ error: 'INCONSISTENT_GROUP_PROTOCOL' })
    expect(groups.checkCommit('g', NOBODY)).toBe('UNKNOWN_MEMBER_ID')
    expect(groups.heartbeat('g', who('a', 1))).toBe('UNKNOWN_MEMBER_ID')
    await member.close()
    expect(await joined(broker, 'g')).toMatchObject({ error: 'NONE' })
  })

  it('of a group that has members is closed to this process', async () => {
    const { broker, topic } = await withTopic()
    const member = await joined(broker, 'g')
    expect(await codeOf(topic.subscribe(() => {}, { group: 'g' }))).toBe('INCONSISTENT_GROUP')
    left(broker, 'g', member)
    await topic.subscribe(() => {}, { group: 'g' })
    expect(broker.describeGroup('g').kind).toBe('share')
  })

  it('whose id was given out, and nobody came with it, is open to this process: who comes late asks for another', async () => {
    const { broker, topic } = await withTopic()
    const invited = await joined(broker, 'g', { requiresId: true })
    expect(invited).toMatchObject({ error: 'MEMBER_ID_REQUIRED' })
    const member = await topic.subscribe(() => {}, { group: 'g' })
    const late = { requiresId: true, memberId: invited?.memberId ?? '' }
    expect(await joined(broker, 'g', late)).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    await member.close()
    expect(await joined(broker, 'g', { requiresId: true })).toMatchObject({ error: 'MEMBER_ID_REQUIRED' })
  })

  it('keeps its place when a member of the protocol comes, and the log is held no more', async () => {
    const { world, broker, topic } = await withTopic()
    const member = await topic.subscribe(() => {}, { group: 'g', from: 'earliest' })
    for (let i = 0; i < 3; i++) await topic.publish(i, { partition: 0 })
    await world.settle()
    await member.close()
    await joined(broker, 'g')
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 3 })
    expect(broker.describe('orders').readers).toEqual([])
    expect(broker.describeGroup('g')).toMatchObject({ kind: 'classic', generation: 1 })
  })

  it('keeps its place when a reader of this process comes', async () => {
    const { world, broker, topic } = await withTopic()
    for (let i = 0; i < 4; i++) await topic.publish(i, { partition: 0 })
    const member = await joined(broker, 'g')
    left(broker, 'g', member)
    await commit(broker, 'g', 'orders', 0, 2)
    const seen: unknown[] = []
    await topic.subscribe(({ value }) => void seen.push(value), { group: 'g', from: 'earliest' })
    await world.settle()
    expect(seen).toEqual([2, 3])
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 4 })
    expect(broker.listGroups()).toEqual(['g'])
  })

  it('that a reader of this process waits to open is the first one’s who comes', async () => {
    const { broker, topic } = await withTopic()
    const opening = codeOf(topic.subscribe(() => {}, { group: 'g', from: new Date(0) }))
    await joined(broker, 'g')
    expect(await opening).toBe('INCONSISTENT_GROUP')
  })
})

describe('administration in this process', () => {
  it('lists groups of both kinds', async () => {
    const { broker, topic } = await withTopic()
    await topic.subscribe(() => {}, { group: 'mine' })
    await topic.subscribe(() => {}, { id: 'no group' })
    await joined(broker, 'theirs')
    expect(broker.listGroups()).toEqual(['mine', 'theirs'])
  })

  it('describes what it can tell of theirs: members, and how far they have come', async () => {
    const { broker, topic } = await withTopic()
    for (let i = 0; i < 4; i++) await topic.publish(i, { partition: 1 })
    await commit(broker, 'g', 'orders', 1, 3)
    const member = await stable(broker, 'g')
    const described = broker.describeGroup('g')
    expect(described).toMatchObject({
      name: 'g',
      kind: 'classic',
      generation: 1,
      overflow: 'drop-oldest',
      members: [{ id: member.memberId, inFlight: 0 }],
      cursors: [{ topic: 'orders', partition: 1, committed: 3, lag: 1, gating: false }],
    })
    expect(codeThrown(() => broker.describeGroup('nobody'))).toBe('UNKNOWN_CONSUMER')
  })

  it('deletes a group without members, and all it had committed', async () => {
    const { broker } = await withTopic()
    await commit(broker, 'g', 'orders', 0, 3)
    const member = await joined(broker, 'g')
    expect(await codeOf(broker.deleteGroup('g'))).toBe('GROUP_NOT_EMPTY')
    left(broker, 'g', member)
    await broker.deleteGroup('g')
    expect(broker.listGroups()).toEqual([])
    expect(committed(broker, 'g', 'orders')).toBeUndefined()
    expect(await codeOf(broker.deleteGroup('g'))).toBe('UNKNOWN_CONSUMER')
  })

  it('deletes of a group of this process what was committed for it in other topics, too', async () => {
    const { broker, topic } = await withTopic()
    await broker.createTopic('others')
    await commit(broker, 'g', 'others', 0, 3)
    await (await topic.subscribe(() => {}, { group: 'g' })).close()
    await broker.deleteGroup('g')
    expect(committed(broker, 'g', 'others')).toBeUndefined()
  })
})

describe('the end', () => {
  it('answers whoever waits, and takes nobody any more', async () => {
    const { world, broker, groups } = await withTopic()
    const member = await stable(broker, 'g')
    const waiting = watch(joined(broker, 'g'))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    await broker.close()
    expect(waiting.value).toMatchObject({ error: 'COORDINATOR_NOT_AVAILABLE' })
    expect(await joined(broker, 'g')).toMatchObject({ error: 'COORDINATOR_NOT_AVAILABLE' })
    expect(groups.heartbeat('g', who(member.memberId, 1))).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(groups.heartbeat('other', who('a', 1))).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(groups.checkCommit('g', NOBODY)).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(world.clock.pending).toBe(0)
  })
})

describe.each([
  ['values by reference', plainDisk],
  ['files', fileDisk],
])('after a restart, on %s', (_, disk) => {
  it('an empty group is there, and its generation goes on', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    await first.broker.createTopic('orders')
    const member = await stable(first.broker, 'g')
    left(first.broker, 'g', member)
    expect(first.broker.describeGroup('g').generation).toBe(2)
    await first.broker.close()
    const { broker } = await machine.boot()
    const { groups } = broker.parts
    expect(groups.get('g')).toMatchObject({ state: 'Empty', generation: 2, protocolType: 'consumer' })
    expect(groups.heartbeat('g', who(member.memberId, 2))).toBe('UNKNOWN_MEMBER_ID')
    expect(groups.checkCommit('g', who(member.memberId, 2))).toBe('UNKNOWN_MEMBER_ID')
    expect(await joined(broker, 'g', { memberId: member.memberId })).toMatchObject({
      error: 'UNKNOWN_MEMBER_ID',
    })
    expect(await joined(broker, 'g')).toMatchObject({ error: 'NONE', generation: 3 })
  })

  it('a group of this process is there under its name, until somebody opens it', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    const topic = await first.broker.createTopic<number>('orders')
    await topic.subscribe(() => {}, { group: 'g', from: 'earliest' })
    await topic.subscribe(() => {}, { id: 'alice', from: 'earliest' })
    await topic.publish(1)
    await first.settle()
    await first.broker.close()
    const { broker } = await machine.boot()
    expect(broker.listGroups()).toEqual(['g'])
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1 })
    await broker.topic('orders').subscribe(() => {}, { group: 'g' })
    expect(broker.listGroups()).toEqual(['g'])
    expect(broker.describeGroup('g')).toMatchObject({ kind: 'share', cursors: [{ committed: 1 }] })
  })

  it('a group that was deleted, or whose name this process took, is not there', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    const topic = await first.broker.createTopic('orders')
    left(first.broker, 'deleted', await joined(first.broker, 'deleted'))
    left(first.broker, 'taken', await joined(first.broker, 'taken'))
    await first.broker.deleteGroup('deleted')
    await (await topic.subscribe(() => {}, { group: 'taken' })).unsubscribe()
    await first.broker.deleteGroup('taken')
    await first.broker.close()
    expect((await machine.boot()).broker.listGroups()).toEqual([])
  })
})

describe('a group whose protocol is another', () => {
  it('may be anybody’s once it is empty', async () => {
    const { broker } = await withTopic()
    left(broker, 'g', await joined(broker, 'g'))
    const said = { protocolType: 'connect', protocols: [protocol('sessioned')] }
    expect(await joined(broker, 'g', said)).toMatchObject({ error: 'NONE', protocolType: 'connect' })
  })
})
