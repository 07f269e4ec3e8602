/** OffsetDelete at the wire: what nobody of the group reads is forgotten. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { offsetDelete } from '../../../src/wire/messages/47-offset-delete.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

/** Topics orders (two partitions) and others; group g has committed 5 in all. */
async function withCommits() {
  const world = new KafkaWorld()
  const topic = await world.broker.createTopic('orders', { partitions: 2 })
  await world.broker.createTopic('others')
  const client = new GroupClient(world)
  for (const [name, partition] of PLACES) await client.commit(name, partition, 5)
  return { world, topic, client }
}

const PLACES = [
  ['orders', 0],
  ['orders', 1],
  ['others', 0],
] as const

async function remove(world: KafkaWorld, names: readonly string[], partition = 0, node = 0) {
  const topics = names.map((name) => ({ name, partitions: [{ partitionIndex: partition }] }))
  const response = await world.send(offsetDelete, 0, { groupId: 'g', topics }, { node })
  return { ...response, codes: response.topics.map(({ partitions }) => partitions[0]?.errorCode) }
}

async function places(client: GroupClient): Promise<number[]> {
  const parts = await Promise.all(PLACES.map(([name, partition]) => client.committed(name, partition)))
  return parts.map(({ committedOffset }) => committedOffset)
}

describe('OffsetDelete', () => {
  it('forgets single places of a group without members', async () => {
    const { world, client } = await withCommits()
    expect(await remove(world, ['orders', 'gone'])).toMatchObject({
      errorCode: 0,
      codes: [0, KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION],
    })
    expect(await remove(world, ['orders'], 7)).toMatchObject({
      codes: [KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION],
    })
    expect(await places(client)).toEqual([-1, 5, 5])
  })

  it('keeps what members subscribe to', async () => {
    const { world, client } = await withCommits()
    await client.joinAll()
    await client.sync([])
    expect(await remove(world, ['orders', 'others'])).toMatchObject({
      errorCode: 0,
      codes: [KAFKA_ERRORS.GROUP_SUBSCRIBED_TO_TOPIC, 0],
    })
    expect(await places(client)).toEqual([5, 5, -1])
  })

  it('keeps all where it cannot tell what consumers subscribe to', async () => {
    const { world, client } = await withCommits()
    await client.join({ protocols: [{ name: 'own', metadata: Uint8Array.of(1) }] }, 3)
    expect(await remove(world, ['orders', 'others'])).toMatchObject({
      codes: [KAFKA_ERRORS.GROUP_SUBSCRIBED_TO_TOPIC, KAFKA_ERRORS.GROUP_SUBSCRIBED_TO_TOPIC],
    })
  })

  it('is refused while members are there that are no consumers', async () => {
    const { world, client } = await withCommits()
    await client.join({ protocolType: 'connect' }, 3)
    expect(await remove(world, ['orders'])).toMatchObject({
      errorCode: KAFKA_ERRORS.NON_EMPTY_GROUP,
      topics: [],
    })
  })

  it('keeps what members of this process read', async () => {
    const { world, topic, client } = await withCommits()
    const member = await topic.subscribe(() => {}, { group: 'g' })
    expect(await remove(world, ['orders', 'others'])).toMatchObject({
      codes: [KAFKA_ERRORS.GROUP_SUBSCRIBED_TO_TOPIC, 0],
    })
    await member.close()
    expect(await remove(world, ['orders'])).toMatchObject({ codes: [0] })
    // A reader is inside its log, which is empty.
    expect(await places(client)).toEqual([-1, 0, -1])
    expect(world.broker.listGroups()).toEqual(['g'])
  })

  it('knows no group that is not there', async () => {
    expect(await remove(new KafkaWorld(), ['orders'])).toMatchObject({
      errorCode: KAFKA_ERRORS.GROUP_ID_NOT_FOUND,
      topics: [],
    })
  })

  it('is the coordinator’s', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    expect(await remove(world, ['orders'], 0, node)).toMatchObject({
      errorCode: KAFKA_ERRORS.NOT_COORDINATOR,
    })
  })
})
