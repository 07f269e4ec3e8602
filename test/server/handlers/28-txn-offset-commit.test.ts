import { beforeEach, describe, expect, it } from 'vitest'
import { KAFKA_ERRORS, kafkaErrorName } from '../../../src/wire/errors.ts'
import { txnOffsetCommit } from '../../../src/wire/messages/28-txn-offset-commit.ts'
import { GroupClient } from '../../support/group-client.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import { TransactionalProducer } from '../../support/kafka-transactions.ts'

let world: DataWorld
let admin: GroupClient

beforeEach(async () => {
  world = new DataWorld()
  await world.broker.createTopic('orders', { partitions: 2 })
  admin = new GroupClient(world)
})

async function committed(partition = 0): Promise<number | string> {
  const { committedOffset, errorCode } = await admin.committed('orders', partition)
  return errorCode === 0 ? committedOffset : kafkaErrorName(errorCode)
}

describe.each(['v1', 'v2'] as const)('TxnOffsetCommit, transactions %s', (protocol) => {
  let producer: TransactionalProducer

  beforeEach(async () => {
    producer = new TransactionalProducer(world, 't', { protocol })
    await producer.init()
  })

  it('counts once the transaction commits; until then, whoever needs it stable is told to wait', async () => {
    expect(await producer.sendOffset('g', 'orders', 5)).toBe('NONE')
    expect(await producer.sendOffset('g', 'orders', 6, 1)).toBe('NONE')
    expect(await producer.sendOffset('g', 'orders', 7)).toBe('NONE')
    expect(await committed()).toBe('UNSTABLE_OFFSET_COMMIT')
    expect(await producer.commit()).toBe('NONE')
    expect([await committed(0), await committed(1)]).toEqual([7, 6])
  })

  it('is forgotten when the transaction is aborted', async () => {
    await admin.commit('orders', 0, 3)
    await producer.sendOffset('g', 'orders', 5)
    expect(await producer.abort()).toBe('NONE')
    expect(await committed()).toBe(3)
  })

  it('is forgotten when its producer is fenced', async () => {
    await producer.sendOffset('g', 'orders', 5)
    await new TransactionalProducer(world, 't').init()
    expect(await committed()).toBe(-1)
  })

  it('moves a group of this process', async () => {
    const seen: unknown[] = []
    const subscription = await world.broker.subscribe('orders', (record) => void seen.push(record.value), {
      group: 'g',
      from: 'earliest',
    })
    await subscription.close()
    for (const value of ['a', 'b', 'c']) await world.broker.publish('orders', value, { partition: 0 })
    await producer.sendOffset('g', 'orders', 2)
    await producer.commit()
    await world.broker.subscribe('orders', (record) => void seen.push(record.value), { group: 'g' })
    await world.broker.idle()
    expect(seen).toEqual(['c'])
  })

  it('is refused from a member of another generation, and taken from one of this', async () => {
    const member = new GroupClient(world)
    await member.joinAll()
    await member.sync([[member.memberId, [['orders', [0, 1]]]]])
    if (protocol === 'v1') await producer.addOffsets('g')
    const { memberId, generation: generationId } = member
    const by = (extra: { memberId?: string; generationId?: number }) =>
      producer.commitOffset('g', 'orders', 5, { memberId, generationId, ...extra })
    expect(await by({ generationId: generationId + 1 })).toBe('ILLEGAL_GENERATION')
    expect(await by({ memberId: 'stranger' })).toBe('UNKNOWN_MEMBER_ID')
    expect(await by({})).toBe('NONE')
    expect(await producer.commitOffset('none', 'orders', 5, { memberId, generationId })).toBe(
      'ILLEGAL_GENERATION',
    )
    await producer.commit()
    expect(await committed()).toBe(5)
  })

  it('refuses what is no partition, and takes the rest', async () => {
    if (protocol === 'v1') await producer.addOffsets('g')
    expect(await producer.commitOffset('g', 'nowhere', 1)).toBe('UNKNOWN_TOPIC_OR_PARTITION')
    expect(await producer.commitOffset('g', 'orders', 1, { partition: 9 })).toBe('UNKNOWN_TOPIC_OR_PARTITION')
    const place = (partitionIndex: number, committedMetadata: string) => ({
      partitionIndex,
      committedOffset: 4,
      committedMetadata,
    })
    const { topics } = await world.send(txnOffsetCommit, producer.versions.commitOffsets, {
      transactionalId: 't',
      ...producer.claim,
      groupId: 'g',
      topics: [{ name: 'orders', partitions: [place(0, 'x'.repeat(4_097)), place(1, 'note')] }],
    })
    expect(topics[0]?.partitions).toEqual([
      { partitionIndex: 0, errorCode: KAFKA_ERRORS.OFFSET_METADATA_TOO_LARGE },
      { partitionIndex: 1, errorCode: KAFKA_ERRORS.NONE },
    ])
    await producer.commit()
    expect(await admin.committed('orders', 1)).toMatchObject({ committedOffset: 4, metadata: 'note' })
  })
})

describe('TxnOffsetCommit', () => {
  it('is taken in every version, with AddOffsetsToTxn of every version', async () => {
    for (let commitOffsets = 0; commitOffsets <= 5; commitOffsets++) {
      const versions = { commitOffsets, addOffsets: Math.min(commitOffsets, 4) }
      const producer = new TransactionalProducer(world, `t${commitOffsets}`, { versions })
      await producer.init()
      expect(await producer.sendOffset('g', 'orders', commitOffsets)).toBe('NONE')
      expect(await producer.commit()).toBe('NONE')
      expect(await committed()).toBe(commitOffsets)
    }
  })

  it('is refused where its group was not added, by the name that the version knows', async () => {
    for (const [commitOffsets, expected] of [
      [0, 'INVALID_TXN_STATE'],
      [3, 'INVALID_TXN_STATE'],
      [4, 'TRANSACTION_ABORTABLE'],
      [5, 'NONE'],
    ] as const) {
      const producer = new TransactionalProducer(world, `t${commitOffsets}`, { versions: { commitOffsets } })
      await producer.init()
      expect(await producer.commitOffset('g', 'orders', 1)).toBe(expected)
    }
  })

  it('is refused to who is fenced, and to strangers', async () => {
    const [older, newer] = [new TransactionalProducer(world, 't'), new TransactionalProducer(world, 't')]
    await older.init()
    await newer.init()
    expect(await older.commitOffset('g', 'orders', 1)).toBe('INVALID_PRODUCER_EPOCH')
    const stranger = new TransactionalProducer(world, 'stranger')
    expect(await stranger.commitOffset('g', 'orders', 1)).toBe('INVALID_PRODUCER_ID_MAPPING')
    expect(await older.addOffsets('g')).toBe('PRODUCER_FENCED')
    const old = new TransactionalProducer(world, 't', { versions: { addOffsets: 1 } })
    Object.assign(old, { producerId: older.producerId, epoch: older.epoch })
    expect(await old.addOffsets('g')).toBe('INVALID_PRODUCER_EPOCH')
    expect(await new TransactionalProducer(world, '').addOffsets('g')).toBe('INVALID_REQUEST')
  })

  it('is the business of the coordinator of the group', async () => {
    const several = new DataWorld({ nodes: 3 })
    await several.broker.createTopic('orders')
    const { cluster } = several.kafka
    const [ours, others] = [cluster.nodes[0], cluster.nodes[1]] as const
    cluster.moveCoordinator('transaction', 't', ours as never)
    cluster.moveCoordinator('group', 'here', ours as never)
    cluster.moveCoordinator('group', 'there', others as never)
    const producer = new TransactionalProducer(several, 't', { protocol: 'v2' })
    await producer.init()
    expect(await producer.commitOffset('here', 'orders', 1)).toBe('NONE')
    expect(await producer.commitOffset('there', 'orders', 1)).toBe('NOT_COORDINATOR')
  })
})
