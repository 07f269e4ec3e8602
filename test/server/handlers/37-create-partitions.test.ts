import { describe, expect, it } from 'vitest'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { createPartitions } from '../../../src/wire/messages/37-create-partitions.ts'
import { KafkaWorld } from '../../support/kafka.ts'

interface Growing {
  readonly name: string
  readonly count: number
  readonly assignments?: readonly { readonly brokerIds: readonly number[] }[]
}

async function grow(world: KafkaWorld, topics: readonly Growing[], validateOnly = false, version = 3) {
  const asked = topics.map(({ assignments = null, ...topic }) => ({ ...topic, assignments }))
  const request = { topics: asked, timeoutMs: 1_000, validateOnly }
  const { results } = await world.send(createPartitions, version, request)
  return results.map(({ name, errorCode, errorMessage }) => {
    expect(errorMessage === null).toBe(errorCode === 0)
    return [name, kafkaErrorName(errorCode)]
  })
}

describe('CreatePartitions', () => {
  it('adds partitions in every version, which programs see', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    for (let version = 0; version <= 3; version++) {
      expect(await grow(world, [{ name: 't', count: version + 2 }], false, version)).toEqual([['t', 'NONE']])
      expect(world.broker.describe('t').partitions).toHaveLength(version + 2)
    }
  })

  it.each([
    ['as many as there are', 2, 'INVALID_PARTITIONS'],
    ['fewer', 1, 'INVALID_PARTITIONS'],
    ['a negative number', -1, 'INVALID_PARTITIONS'],
    ['more than a topic has', 100_001, 'INVALID_PARTITIONS'],
    ['more than one request may create', 10_003, 'POLICY_VIOLATION'],
  ])('refuses %s', async (_, count, error) => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t', { partitions: 2 })
    expect(await grow(world, [{ name: 't', count }])).toEqual([['t', error]])
    expect(world.broker.describe('t').partitions).toHaveLength(2)
  })

  it('refuses a topic that there is not, and one that is named twice, and grows the others', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('a')
    await world.broker.createTopic('b')
    const topics = ['b', 'missing', 'a', 'b'].map((name) => ({ name, count: 2 }))
    expect(await grow(world, topics)).toEqual([
      ['missing', 'UNKNOWN_TOPIC_OR_PARTITION'],
      ['a', 'NONE'],
      ['b', 'INVALID_REQUEST'],
    ])
    expect(world.broker.describe('b').partitions).toHaveLength(1)
  })

  it.each([
    ['one for each that comes', [[1], [0]], 'NONE'],
    ['fewer than come', [[1]], 'INVALID_REPLICA_ASSIGNMENT'],
    ['to a stranger', [[1], [2]], 'INVALID_REPLICA_ASSIGNMENT'],
    [
      'of more replicas than the others have',
      [
        [0, 1],
        [1, 0],
      ],
      'INVALID_REPLICA_ASSIGNMENT',
    ],
  ] as const)('checks assignments: %s', async (_, assigned, error) => {
    const world = new KafkaWorld({ nodes: 2 })
    await world.broker.createTopic('t')
    const assignments = assigned.map((brokerIds) => ({ brokerIds }))
    expect(await grow(world, [{ name: 't', count: 3, assignments }])).toEqual([['t', error]])
  })

  it('changes nothing where it is only to be checked', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    expect(await grow(world, [{ name: 't', count: 3 }], true)).toEqual([['t', 'NONE']])
    expect(world.broker.describe('t').partitions).toHaveLength(1)
  })

  it('says so where another request was faster', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    const answers = await Promise.all([4, 2].map((count) => grow(world, [{ name: 't', count }])))
    expect(answers).toEqual([[['t', 'NONE']], [['t', 'INVALID_PARTITIONS']]])
  })
})
