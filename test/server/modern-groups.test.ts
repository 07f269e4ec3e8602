/** What the rest of the protocol says of modern groups: their offsets, and tools of before KIP-848. */
import { describe, expect, it } from 'vitest'
import { assignedTopics, subscribedTopics } from '../../src/wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { describeGroups } from '../../src/wire/messages/15-describe-groups.ts'
import { listGroups } from '../../src/wire/messages/16-list-groups.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { initProducerId } from '../../src/wire/messages/22-init-producer-id.ts'
import { txnOffsetCommit } from '../../src/wire/messages/28-txn-offset-commit.ts'
import { deleteGroups } from '../../src/wire/messages/42-delete-groups.ts'
import { offsetDelete } from '../../src/wire/messages/47-offset-delete.ts'
import { GroupClient } from '../support/group-client.ts'
import { KafkaWorld } from '../support/kafka.ts'
import { ModernClient } from '../support/modern-client.ts'

async function withMember() {
  const world = new KafkaWorld()
  await world.broker.createTopic('orders', { partitions: 2 })
  const member = new ModernClient(world)
  await member.beat()
  return { world, member }
}

describe('offsets of a modern group', () => {
  it.each([9, 10])(
    'are committed and asked for by members in their epoch, in version %i',
    async (version) => {
      const { member } = await withMember()
      expect(await member.commit(5, {}, version)).toBe(KAFKA_ERRORS.NONE)
      const stale = { generationIdOrMemberEpoch: 7 }
      expect(await member.commit(6, stale, version)).toBe(KAFKA_ERRORS.STALE_MEMBER_EPOCH)
      const stranger = { memberId: 'a stranger' }
      expect(await member.commit(6, stranger, version)).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
      expect(await member.committed({}, version)).toEqual({ errorCode: 0, offset: 5 })
      expect(await member.committed({ memberEpoch: 7 }, version)).toEqual({
        errorCode: KAFKA_ERRORS.STALE_MEMBER_EPOCH,
      })
      expect(await member.committed(stranger, version)).toEqual({
        errorCode: KAFKA_ERRORS.UNKNOWN_MEMBER_ID,
      })
      const administrator = { memberId: null, memberEpoch: -1 }
      expect(await member.committed(administrator, version)).toEqual({ errorCode: 0, offset: 5 })
    },
  )

  it('are committed by no member in versions that do not know epochs', async () => {
    const { member } = await withMember()
    expect(await member.commit(5, {}, 8)).toBe(KAFKA_ERRORS.UNSUPPORTED_VERSION)
    await member.beat({ memberEpoch: -1 })
    const nobody = { generationIdOrMemberEpoch: -1, memberId: '' }
    expect(await member.commit(5, nobody, 8)).toBe(KAFKA_ERRORS.NONE)
  })

  it('are asked for at the coordinator alone', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    await world.broker.createTopic('orders')
    const { cluster } = world.kafka
    const node = cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    await new ModernClient(world, { sender: { node } }).beat()
    const elsewhere = new ModernClient(world)
    const { errorCode } = await elsewhere.committed()
    expect(errorCode).toBe(node === 0 ? KAFKA_ERRORS.UNKNOWN_MEMBER_ID : KAFKA_ERRORS.NOT_COORDINATOR)
  })

  it('are committed in a transaction by members in their epoch, or by whoever does not say', async () => {
    const { world, member } = await withMember()
    const transactionalId = 't'
    const producer = await world.send(initProducerId, 5, { transactionalId, transactionTimeoutMs: 60_000 })
    const partitions = [{ partitionIndex: 0, committedOffset: 5, committedMetadata: '' }]
    const commit = async (generationId: number, memberId: string): Promise<number | undefined> => {
      const { topics } = await world.send(txnOffsetCommit, 5, {
        transactionalId,
        groupId: 'g',
        producerId: producer.producerId,
        producerEpoch: producer.producerEpoch,
        generationId,
        memberId,
        groupInstanceId: null,
        topics: [{ name: 'orders', partitions }],
      })
      return topics[0]?.partitions[0]?.errorCode
    }
    expect(await commit(7, member.memberId)).toBe(KAFKA_ERRORS.ILLEGAL_GENERATION)
    expect(await commit(1, 'a stranger')).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    expect(await commit(1, member.memberId)).toBe(KAFKA_ERRORS.NONE)
    expect(await commit(-1, '')).toBe(KAFKA_ERRORS.NONE)
  })

  it('are deleted of topics that nobody subscribes to', async () => {
    const { world, member } = await withMember()
    await world.broker.createTopic('others')
    const topic = (name: string) => ({ name, partitions: [{ partitionIndex: 0 }] })
    const topics = [topic('orders'), topic('others')]
    const codes = async () => {
      const deleted = await world.send(offsetDelete, 0, { groupId: 'g', topics })
      return deleted.topics.map(({ partitions }) => partitions[0]?.errorCode)
    }
    expect(await codes()).toEqual([KAFKA_ERRORS.GROUP_SUBSCRIBED_TO_TOPIC, KAFKA_ERRORS.NONE])
    await member.beat({ memberEpoch: -1 })
    expect(await codes()).toEqual([KAFKA_ERRORS.NONE, KAFKA_ERRORS.NONE])
  })
})

describe('a modern group', () => {
  it('is listed with its type', async () => {
    const { world } = await withMember()
    const listed = async (type: string) =>
      (await world.send(listGroups, 5, { statesFilter: [], typesFilter: [type] })).groups
    expect(await listed('consumer')).toEqual([
      { groupId: 'g', protocolType: 'consumer', groupState: 'Stable', groupType: 'consumer' },
    ])
    expect(await listed('classic')).toEqual([])
  })

  it('is described to tools that know classic groups alone', async () => {
    const { world, member } = await withMember()
    const described = async () => {
      const { groups } = await world.send(describeGroups, 5, { groups: ['g'] })
      return groups[0] as (typeof groups)[number]
    }
    const { members, ...group } = await described()
    expect(group).toMatchObject({
      errorCode: 0,
      groupState: 'Stable',
      protocolType: 'consumer',
      protocolData: 'uniform',
    })
    expect(members).toMatchObject([{ memberId: member.memberId, clientId: 'test', clientHost: '/127.0.0.1' }])
    const [one] = members as [(typeof members)[number]]
    expect(subscribedTopics(one.memberMetadata)).toEqual(['orders'])
    expect(assignedTopics(one.memberAssignment)).toEqual([{ topic: 'orders', partitions: [0, 1] }])
    await member.beat({ memberEpoch: -1 })
    expect(await described()).toMatchObject({ groupState: 'Empty', protocolData: '', members: [] })
  })

  it('is deleted once it is empty', async () => {
    const { world, member } = await withMember()
    const code = async () => (await world.send(deleteGroups, 2, { groupsNames: ['g'] })).results[0]?.errorCode
    expect(await code()).toBe(KAFKA_ERRORS.NON_EMPTY_GROUP)
    await member.beat({ memberEpoch: -1 })
    expect(await code()).toBe(KAFKA_ERRORS.NONE)
  })

  it('goes to classic members once it is empty, and comes back, with its place', async () => {
    const { world, member } = await withMember()
    await member.commit(5)
    const classic = new GroupClient(world)
    expect(await classic.join()).toMatchObject({ errorCode: KAFKA_ERRORS.INCONSISTENT_GROUP_PROTOCOL })
    await member.beat({ memberEpoch: -1 })
    expect(await classic.joinAll()).toMatchObject({ errorCode: 0, generationId: 3 })
    await classic.sync([])
    expect(await classic.committed('orders', 0)).toMatchObject({ committedOffset: 5 })
    expect(await member.beat({ memberEpoch: 0 })).toMatchObject({
      errorCode: KAFKA_ERRORS.GROUP_ID_NOT_FOUND,
    })
    await classic.leave()
    expect(await member.beat({ memberEpoch: 0 })).toMatchObject({ errorCode: 0, memberEpoch: 5 })
    expect(await member.committed()).toEqual({ errorCode: 0, offset: 5 })
  })

  it('is a feature of the cluster, by which clients choose', async () => {
    const { world } = await withMember()
    const { supportedFeatures, finalizedFeatures } = await world.send(apiVersions, 4, {
      clientSoftwareName: 'test',
      clientSoftwareVersion: '1',
    })
    expect(supportedFeatures).toContainEqual({ name: 'group.version', minVersion: 0, maxVersion: 1 })
    expect(finalizedFeatures).toContainEqual(
      expect.objectContaining({ name: 'group.version', maxVersionLevel: 1 }),
    )
  })
})
