/**
 * Groups with members through the end of a process: who goes on as if nothing had been, whose place is kept, who is out,
 * and that what was under way goes on.
 */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { type Disk, fileDisk, plainDisk } from '../support/disks.ts'
import { GroupClient } from '../support/group-client.ts'
import type { KafkaWorld } from '../support/kafka.ts'
import { type Booted, bootKafka } from '../support/kafka-disk.ts'
import { ModernClient } from '../support/modern-client.ts'
import { assigned, moved, rebalance } from './restart-kit.ts'

const { NONE, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID } =
  KAFKA_ERRORS
const SESSION_MS = 10_000

async function first(disk: Disk, partitions = 6): Promise<Booted> {
  const booted = await bootKafka(disk)
  await booted.world.broker.createTopic('orders', { partitions })
  return booted
}

async function next(disk: Disk, before: Booted): Promise<KafkaWorld> {
  before.crash()
  return (await bootKafka(disk)).world
}

describe.each([
  ['values by reference', plainDisk],
  ['files', fileDisk],
])('a classic group after a crash, on %s', (_, newDisk) => {
  async function stable(count: number, instances = false) {
    const disk = newDisk()
    const booted = await first(disk)
    const clients = Array.from({ length: count }, (__, i) => {
      return new GroupClient(booted.world, { instanceId: instances ? `instance-${i}` : null })
    })
    for (let i = 1; i <= count; i++) await rebalance(clients.slice(0, i))
    return { disk, booted, clients }
  }

  it('goes on in its generation: heartbeats, commits and syncs are answered as before', async () => {
    const { disk, booted, clients } = await stable(3)
    const world = await next(disk, booted)
    const group = world.broker.parts.groups.get('g')
    expect(group).toMatchObject({ state: 'Stable', generation: 3, protocolName: 'range' })
    expect(group?.members.leader?.id).toBe(clients[0]?.memberId)
    for (const [i, client] of moved(clients, world).entries()) {
      expect(await client.heartbeat()).toBe(NONE)
      expect(await client.commit('orders', i, 5)).toBe(NONE)
      expect(assigned(await client.sync())).toEqual([2 * i, 2 * i + 1])
    }
    // For longer than a session, nobody is asked to join.
    for (let i = 0; i < 5; i++) {
      await world.clock.advance(SESSION_MS / 2)
      for (const client of moved(clients, world)) expect(await client.heartbeat()).toBe(NONE)
    }
  })

  it('takes new members: all rejoin under the ids that they have', async () => {
    const { disk, booted, clients } = await stable(2)
    const world = await next(disk, booted)
    const all = moved(clients, world)
    const late = new GroupClient(world)
    const joined = late.joinAll()
    await world.clock.settle()
    for (const client of all) expect(await client.heartbeat()).toBe(REBALANCE_IN_PROGRESS)
    await Promise.all([joined, ...all.map((client) => client.join())])
    expect([...all, late].map(({ generation }) => generation)).toEqual([3, 3, 3])
    expect(all.map(({ memberId }) => memberId)).toEqual(clients.map(({ memberId }) => memberId))
  })

  it('puts out who does not come back, a whole session after it was opened', async () => {
    const { disk, booted, clients } = await stable(2)
    await booted.world.clock.advance(SESSION_MS - 1)
    const world = await next(disk, booted)
    const [alive] = moved(clients, world) as [GroupClient]
    await world.clock.advance(SESSION_MS - 1)
    expect(await alive.heartbeat()).toBe(NONE)
    await world.clock.advance(1)
    expect(await alive.heartbeat()).toBe(REBALANCE_IN_PROGRESS)
    await alive.join()
    expect(assigned(await alive.sync([[alive.memberId, [['orders', [0, 1, 2, 3, 4, 5]]]]]))).toHaveLength(6)
  })

  it('keeps the places of static members, also of one that takes it under another id', async () => {
    const { disk, booted, clients } = await stable(2, true)
    const world = await next(disk, booted)
    const [, former] = moved(clients, world) as [GroupClient, GroupClient]
    const back = new GroupClient(world, { instanceId: 'instance-1' })
    expect(await back.join()).toMatchObject({ errorCode: NONE, generationId: 2 })
    expect(assigned(await back.sync())).toEqual([3, 4, 5])
    expect(await former.heartbeat()).toBe(FENCED_INSTANCE_ID)
    const again = await next(disk, await reopened(disk))
    const [leader, member] = moved([clients[0] as GroupClient, back], again)
    expect(await leader?.heartbeat()).toBe(NONE)
    expect(await member?.heartbeat()).toBe(NONE)
    expect(again.broker.parts.groups.get('g')).toMatchObject({ state: 'Stable', generation: 2 })
  })

  it('knows the leader that took its own place under another id', async () => {
    const { disk, booted } = await stable(2, true)
    const back = new GroupClient(booted.world, { instanceId: 'instance-0' })
    await back.join()
    const world = await next(disk, booted)
    const group = world.broker.parts.groups.get('g')
    expect(group).toMatchObject({ state: 'Stable', generation: 2 })
    expect(group?.members.leader?.id).toBe(back.memberId)
  })

  it('goes on with a rebalance that began because somebody left', async () => {
    const { disk, booted, clients } = await stable(3)
    await clients[2]?.leave()
    const world = await next(disk, booted)
    const [a, b, gone] = moved(clients, world) as [GroupClient, GroupClient, GroupClient]
    expect(world.broker.parts.groups.get('g')).toMatchObject({ state: 'PreparingRebalance', generation: 3 })
    expect(await gone.heartbeat()).toBe(UNKNOWN_MEMBER_ID)
    expect(await a.heartbeat()).toBe(REBALANCE_IN_PROGRESS)
    await rebalance([a, b])
    expect([a.generation, b.generation]).toEqual([4, 4])
  })

  it('waits in that for those who do not come as long as they may take', async () => {
    const { disk, booted, clients } = await stable(3)
    await clients[2]?.leave()
    const world = await next(disk, booted)
    const [a] = moved(clients, world) as [GroupClient]
    const joined = a.join()
    await world.clock.advance(SESSION_MS)
    expect(await joined).toMatchObject({ errorCode: NONE, generationId: 4 })
  })

  it('has a generation that nobody was assigned in made anew', async () => {
    const { disk, booted, clients } = await stable(2)
    const joined = await Promise.all(clients.map((client) => client.join()))
    expect(joined.map(({ generationId }) => generationId)).toEqual([3, 3])
    const world = await next(disk, booted)
    const all = moved(clients, world)
    for (const client of all) expect(await client.heartbeat()).toBe(REBALANCE_IN_PROGRESS)
    expect(await all[0]?.sync()).toMatchObject({ errorCode: REBALANCE_IN_PROGRESS })
    await rebalance(all)
    expect(all.map(({ generation }) => generation)).toEqual([4, 4])
  })

  it('does not know an instance by an id that somebody else has by now', async () => {
    const { disk, booted, clients } = await stable(2, true)
    await Promise.all(clients.map((client) => client.join()))
    const back = new GroupClient(booted.world, { instanceId: 'instance-1' })
    await Promise.all([back.join(), clients[0]?.join()])
    const world = await next(disk, booted)
    const [unknown] = moved([back], world) as [GroupClient]
    // It joins anew by itself; FENCED_INSTANCE_ID would be its end.
    expect(await unknown.heartbeat()).toBe(UNKNOWN_MEMBER_ID)
  })

  it('of another protocol than consumers have comes back as it was', async () => {
    const disk = newDisk()
    const booted = await first(disk)
    const client = new GroupClient(booted.world)
    const metadata = Uint8Array.from({ length: 256 }, (__, i) => i)
    const protocols = [{ name: 'sessioned', metadata }]
    await client.joinAll({ protocolType: 'connect', protocols })
    const { groups } = booted.world.broker.parts
    await groups.sync('g', {
      memberId: client.memberId,
      instanceId: null,
      generation: 1,
      protocolType: null,
      protocolName: null,
      assignments: new Map([[client.memberId, metadata.toReversed()]]),
      signal: new AbortController().signal,
    })
    const world = await next(disk, booted)
    const group = world.broker.parts.groups.get('g')
    const [member] = [...(group?.members ?? [])]
    expect(group).toMatchObject({ state: 'Stable', protocolType: 'connect', protocolName: 'sessioned' })
    expect(member?.protocols).toEqual([{ name: 'sessioned', metadata, topics: null }])
    expect(member?.assignment).toEqual(metadata.toReversed())
  })

  it('refuses whoever is of a generation that it has not had', async () => {
    const { disk, booted, clients } = await stable(1)
    const world = await next(disk, booted)
    const [client] = moved(clients, world) as [GroupClient]
    client.generation = 2
    expect(await client.heartbeat()).toBe(ILLEGAL_GENERATION)
  })
})

async function reopened(disk: Disk): Promise<Booted> {
  return bootKafka(disk)
}

describe.each([
  ['values by reference', plainDisk],
  ['files', fileDisk],
])('a modern group after a crash, on %s', (_, newDisk) => {
  async function settled(count: number, changes: (i: number) => object = () => ({})) {
    const disk = newDisk()
    const booted = await first(disk)
    const clients = Array.from({ length: count }, () => new ModernClient(booted.world))
    for (let round = 0; round < 4; round++) {
      for (const [i, client] of clients.entries()) await client.beat(changes(i))
    }
    return { disk, booted, clients }
  }

  it('goes on in its epoch: members are answered as before, and move nothing', async () => {
    const { disk, booted, clients } = await settled(3)
    const world = await next(disk, booted)
    expect(world.broker.parts.groups.modern('g')).toMatchObject({ state: 'Stable', epoch: 3 })
    for (const client of moved(clients, world)) {
      expect(await client.beat()).toMatchObject({ errorCode: NONE, memberEpoch: 3, assignment: null })
      expect(await client.commit(5)).toBe(NONE)
    }
    expect(world.broker.parts.groups.modern('g')?.epoch).toBe(3)
    const owned = clients.flatMap(({ partitions }) => partitions).sort()
    expect(owned).toEqual([0, 1, 2, 3, 4, 5])
  })

  it('tells one who says all that it is what it has', async () => {
    const { disk, booted, clients } = await settled(2)
    const world = await next(disk, booted)
    const [client] = moved(clients, world) as [ModernClient]
    const whole = { rebalanceTimeoutMs: 60_000, subscribedTopicNames: ['orders'] }
    expect((await client.beat(whole)).assignment?.topicPartitions).toEqual(clients[0]?.owned)
  })

  it('goes on with a partition that is being given up: nobody has it before its owner has not', async () => {
    const { disk, booted, clients } = await settled(1)
    const [owner] = clients as [ModernClient]
    const heir = new ModernClient(booted.world)
    await heir.beat()
    // It is asked to give up, and has not yet done so.
    const held = owner.owned
    expect((await owner.beat()).memberEpoch).toBe(1)
    owner.owned = held
    const world = await next(disk, booted)
    const [a, b] = moved([owner, heir], world) as [ModernClient, ModernClient]
    a.owned = held
    expect(world.broker.parts.groups.modern('g')?.state).toBe('Reconciling')
    await b.beat()
    expect(b.partitions).toEqual([])
    await a.beat()
    expect(a.memberEpoch).toBe(1)
    expect(await a.commit(3)).toBe(NONE)
    await b.beat()
    expect(b.partitions).toEqual([])
    // The client has taken in what it may keep.
    a.owned = [{ topicId: held[0]?.topicId as string, partitions: [0, 1, 2] }]
    await a.beat()
    await b.beat()
    await a.beat()
    await b.beat()
    expect([...a.partitions, ...b.partitions].sort()).toEqual([0, 1, 2, 3, 4, 5])
    expect([a.partitions.length, b.partitions.length]).toEqual([3, 3])
    expect(world.broker.parts.groups.modern('g')?.state).toBe('Stable')
  })

  it('puts out who does not give up in time, counted from when it is served', async () => {
    const { disk, booted, clients } = await settled(1)
    const [owner] = clients as [ModernClient]
    const held = owner.owned
    const heir = new ModernClient(booted.world)
    await heir.beat()
    await owner.beat()
    const world = await next(disk, booted)
    const [a, b] = moved([owner, heir], world) as [ModernClient, ModernClient]
    expect(world.kafka).toBeDefined()
    for (let i = 0; i < 60; i++) {
      await world.clock.advance(999)
      a.owned = held
      expect((await a.beat()).errorCode).toBe(NONE)
      await b.beat()
      expect(b.partitions).toEqual([])
    }
    await world.clock.advance(60)
    expect((await a.beat()).errorCode).toBe(UNKNOWN_MEMBER_ID)
    await b.beat()
    expect(b.partitions).toHaveLength(6)
  })

  it('takes a member at the epoch before, whose answer was lost with the process', async () => {
    const { disk, booted, clients } = await settled(2)
    const [a, b] = clients as [ModernClient, ModernClient]
    await b.beat({ memberEpoch: -1 })
    const before = { memberEpoch: a.memberEpoch, owned: a.owned }
    await a.beat()
    Object.assign(a, before)
    const world = await next(disk, booted)
    const [client] = moved([a], world) as [ModernClient]
    const whole = { rebalanceTimeoutMs: 60_000, subscribedTopicNames: ['orders'] }
    expect(await client.beat(whole)).toMatchObject({ errorCode: NONE, memberEpoch: 3 })
    expect(client.partitions).toHaveLength(6)
  })

  it('puts out who does not come back, a whole session after it is served', async () => {
    const { disk, booted, clients } = await settled(2)
    booted.crash()
    const { world } = await bootKafka(disk, { groups: { consumerSessionTimeoutMs: 1_000 } })
    await world.clock.advance(44_000)
    const [alive] = moved(clients, world) as [ModernClient]
    // The first request has the broker served.
    expect(world.kafka).toBeDefined()
    await world.clock.advance(999)
    expect(await alive.beat()).toMatchObject({ errorCode: NONE, memberEpoch: 2 })
    await world.clock.advance(1)
    await alive.beat()
    expect(alive.partitions).toHaveLength(6)
  })

  it('keeps the places of static members: of one that is there, and of one that will be back', async () => {
    const instance = (i: number) => ({ instanceId: `instance-${i}` })
    const { disk, booted, clients } = await settled(2, instance)
    await clients[1]?.beat({ memberEpoch: -2, ...instance(1) })
    const world = await next(disk, booted)
    const [a] = moved(clients, world) as [ModernClient]
    expect((await a.beat(instance(0))).errorCode).toBe(NONE)
    expect(a.partitions).toEqual(clients[0]?.partitions)
    const back = new ModernClient(world)
    await back.beat(instance(1))
    expect(back.partitions).toEqual(clients[1]?.partitions)
    await a.beat(instance(0))
    expect(a.partitions).toEqual(clients[0]?.partitions)
    // The id before this one is nobody's.
    const again = await next(disk, { world, crash: () => undefined })
    expect([...(again.broker.parts.groups.modern('g')?.members ?? [])].map(({ id }) => id).sort()).toEqual(
      [a.memberId, back.memberId].sort(),
    )
  })

  it('remembers what its members subscribe to, also by a pattern, where they run and what they are', async () => {
    const disk = newDisk()
    const booted = await first(disk, 1)
    const client = new ModernClient(booted.world, { sender: { clientId: 'mine' } })
    const subscription = { subscribedTopicNames: [], subscribedTopicRegex: 'or.*' }
    await client.beat({ ...subscription, rackId: 'here', serverAssignor: 'range' })
    const world = await next(disk, booted)
    expect([...(world.broker.parts.groups.modern('g')?.members ?? [])]).toMatchObject([
      {
        id: client.memberId,
        clientId: 'mine',
        clientHost: '127.0.0.1',
        rackId: 'here',
        assignor: 'range',
        rebalanceTimeoutMs: 60_000,
      },
    ])
    await world.broker.createTopic('ordinary', { partitions: 2 })
    await world.broker.createTopic('another')
    const [back] = moved([client], world) as [ModernClient]
    await back.beat()
    expect(back.partitions).toHaveLength(3)
  })

  it('sees that a topic came or went with the process', async () => {
    const { disk, booted, clients } = await settled(1)
    await booted.world.broker.alterTopic('orders', { partitions: 8 })
    const world = await next(disk, booted)
    const [client] = moved(clients, world) as [ModernClient]
    await client.beat()
    expect(client.partitions).toHaveLength(8)
    await world.broker.deleteTopic('orders')
    const later = await next(disk, { world, crash: () => undefined })
    const [alone] = moved([client], later) as [ModernClient]
    await alone.beat()
    await alone.beat()
    expect(alone.partitions).toEqual([])
  })
})

it('a close ends no membership', async () => {
  const disk = fileDisk()
  const { world } = await first(disk)
  const classic = new GroupClient(world, { group: 'classic' })
  await rebalance([classic])
  const modern = new ModernClient(world, { group: 'modern' })
  await modern.beat()
  await world.broker.close()
  const after = (await bootKafka(disk)).world
  const [a] = moved([classic], after) as [GroupClient]
  const [b] = moved([modern], after) as [ModernClient]
  expect(await a.heartbeat()).toBe(NONE)
  expect(await b.beat()).toMatchObject({ errorCode: NONE, memberEpoch: 1, assignment: null })
})
