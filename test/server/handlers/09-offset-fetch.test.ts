/** OffsetFetch at the wire: what was committed, in the words of each version. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { offsetFetch } from '../../../src/wire/messages/09-offset-fetch.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

/** Group g has 3 in orders/0, with a note and an epoch, and 9 in others/0. */
async function withCommits(nodes = 1) {
  const world = new KafkaWorld({ nodes })
  const topic = await world.broker.createTopic<number>('orders', { partitions: 2 })
  await world.broker.createTopic('others')
  const { topics, groupOffsets, groups } = world.broker.parts
  groups.checkCommit('g', { memberId: '', instanceId: null, generation: -1 })
  const id = (name: string): string => topics.get(name)?.id as string
  await groupOffsets.commit('g', [
    { topicId: id('orders'), partition: 0, offset: 3, metadata: 'note', epoch: 2 },
    { topicId: id('others'), partition: 0, offset: 9, metadata: '', epoch: -1 },
  ])
  const { cluster } = world.kafka
  const right = cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
  return { world, topic, id, groupOffsets, right }
}

const asked = [{ name: 'orders', partitionIndexes: [1, 0] }]
const NOTHING = { committedOffset: -1, committedLeaderEpoch: -1, metadata: '', errorCode: 0 }

describe('OffsetFetch', () => {
  it.each([1, 2, 3, 4, 5, 6, 7])('of one group, in version %i', async (version) => {
    const { world } = await withCommits()
    const response = await world.send(offsetFetch, version, { groupId: 'g', topics: asked })
    const epoch = version >= 5 ? 2 : -1
    expect(response).toMatchObject({
      errorCode: 0,
      topics: [
        {
          name: 'orders',
          partitions: [
            { partitionIndex: 1, ...NOTHING },
            { partitionIndex: 0, committedOffset: 3, committedLeaderEpoch: epoch, metadata: 'note' },
          ],
        },
      ],
    })
  })

  it.each([8, 9])('of several groups, in version %i', async (version) => {
    const { world } = await withCommits()
    const groups = ['g', 'nobody'].map((groupId) => ({ groupId, memberId: null, topics: asked }))
    const response = await world.send(offsetFetch, version, { groups })
    expect(
      response.groups.map(({ groupId, errorCode, topics }) => ({
        groupId,
        errorCode,
        offsets: topics[0]?.partitions.map(({ committedOffset }) => committedOffset),
      })),
    ).toEqual([
      { groupId: 'g', errorCode: 0, offsets: [-1, 3] },
      { groupId: 'nobody', errorCode: 0, offsets: [-1, -1] },
    ])
  })

  it('says topics by id from version 10 on', async () => {
    const { world, id } = await withCommits()
    const topicId = 'AAAAAAAAAAAAAAAAAAAABQ'
    const topics = [
      { topicId: id('orders'), partitionIndexes: [0] },
      { topicId, partitionIndexes: [4] },
    ]
    const response = await world.send(offsetFetch, 10, { groups: [{ groupId: 'g', memberId: null, topics }] })
    expect(response.groups[0]?.topics).toMatchObject([
      { topicId: id('orders'), partitions: [{ committedOffset: 3, errorCode: 0 }] },
      {
        topicId,
        partitions: [{ partitionIndex: 4, committedOffset: -1, errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_ID }],
      },
    ])
  })

  it.each([2, 7, 8, 10])(
    'of all topics, in version %i: those where something was committed',
    async (version) => {
      const { world, id } = await withCommits()
      const body = version < 8 ? { groupId: 'g', topics: null } : { groups: [{ groupId: 'g', topics: null }] }
      const response = await world.send(offsetFetch, version, body)
      const groups = response.groups[0]?.topics ?? []
      const topics =
        version < 8
          ? response.topics.map((each) => ({ ...each, key: each.name }))
          : groups.map((each) => ({ ...each, key: version < 10 ? each.name : each.topicId }))
      const offsets = new Map(
        topics.map(({ key: of, partitions }) => [
          of,
          partitions.map(({ partitionIndex, committedOffset }) => [partitionIndex, committedOffset]),
        ]),
      )
      const key = (name: string): string => (version === 10 ? id(name) : name)
      expect(offsets).toEqual(
        new Map([
          [key('orders'), [[0, 3]]],
          [key('others'), [[0, 9]]],
        ]),
      )
    },
  )

  it('of a topic or partition that is not there is −1', async () => {
    const { world } = await withCommits()
    const topics = [
      { name: 'orders', partitionIndexes: [7] },
      { name: 'gone', partitionIndexes: [0] },
    ]
    const response = await world.send(offsetFetch, 7, { groupId: 'g', topics })
    expect(response.topics.map(({ partitions }) => partitions[0])).toMatchObject([NOTHING, NOTHING])
  })

  it('says where a group of this process is', async () => {
    const { world, topic } = await withCommits()
    await topic.subscribe(() => {}, { group: 'mine', from: 'earliest' })
    for (let i = 0; i < 4; i++) await topic.publish(i, { partition: 1 })
    await world.settle()
    const client = new GroupClient(world, { group: 'mine' })
    expect(await client.committed('orders', 1)).toMatchObject({ committedOffset: 4, metadata: '' })
    const all = await world.send(offsetFetch, 7, { groupId: 'mine', topics: null })
    expect(all.topics[0]?.partitions.map(({ committedOffset }) => committedOffset)).toEqual([0, 4])
  })

  it('that requires stable ones is told where a transaction may still change them', async () => {
    const { world, id, groupOffsets } = await withCommits()
    const set = { topicId: id('orders'), partition: 0, offset: 5, metadata: '', epoch: -1 }
    await groupOffsets.pending(1, 'g', [set])
    const fetch = async (requireStable: boolean) =>
      (await world.send(offsetFetch, 7, { groupId: 'g', topics: asked, requireStable })).topics[0]?.partitions
    expect(await fetch(false)).toMatchObject([NOTHING, { committedOffset: 3, errorCode: 0 }])
    expect(await fetch(true)).toMatchObject([
      NOTHING,
      { ...NOTHING, partitionIndex: 0, errorCode: KAFKA_ERRORS.UNSTABLE_OFFSET_COMMIT },
    ])
    await groupOffsets.complete(1, true)
    expect(await fetch(true)).toMatchObject([NOTHING, { committedOffset: 5, errorCode: 0 }])
  })

  it.each([1, 2, 7, 8, 10])('is the coordinator’s, as version %i can say it', async (version) => {
    const { world, id, right } = await withCommits(2)
    const topics = version < 10 ? asked : [{ topicId: id('orders'), partitionIndexes: [0] }]
    const body = version < 8 ? { groupId: 'g', topics: asked } : { groups: [{ groupId: 'g', topics }] }
    const response = await world.send(offsetFetch, version, body, { node: 1 - right })
    const errorCode = KAFKA_ERRORS.NOT_COORDINATOR
    if (version >= 8) expect(response.groups).toEqual([{ groupId: 'g', topics: [], errorCode }])
    else if (version >= 2) expect(response).toMatchObject({ topics: [], errorCode })
    else {
      expect(response.topics[0]?.partitions).toMatchObject([
        { ...NOTHING, partitionIndex: 1, errorCode },
        { ...NOTHING, partitionIndex: 0, errorCode },
      ])
    }
  })
})
