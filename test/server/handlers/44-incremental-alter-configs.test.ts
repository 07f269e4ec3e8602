import { describe, expect, it } from 'vitest'
import { RESOURCE_TYPES } from '../../../src/server/config-values.ts'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { incrementalAlterConfigs } from '../../../src/wire/messages/44-incremental-alter-configs.ts'
import { fileDisk } from '../../support/disks.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { bootKafka } from '../../support/kafka-disk.ts'

const [SET, DELETE, APPEND, SUBTRACT] = [0, 1, 2, 3]

type Operation = readonly [operation: number | undefined, name: string, value?: string]

async function alter(world: KafkaWorld, operations: readonly Operation[], validateOnly = false, version = 1) {
  const configs = operations.map(([operation, name, value = null]) => ({
    name,
    configOperation: operation as number,
    value,
  }))
  const resources = [{ resourceType: RESOURCE_TYPES.topic, resourceName: 't', configs }]
  const { responses } = await world.send(incrementalAlterConfigs, version, { resources, validateOnly })
  expect(responses).toHaveLength(1)
  return kafkaErrorName(responses[0]?.errorCode ?? -1)
}

async function worldWith(texts: Record<string, string> = {}): Promise<KafkaWorld> {
  const world = new KafkaWorld()
  await world.kafka.configs.create('t', 1, texts)
  return world
}

function setOf({ kafka }: KafkaWorld) {
  return kafka.configs.setOf(kafka.parts.topics.require('t'))
}

const THROTTLED = 'leader.replication.throttled.replicas'

describe('IncrementalAlterConfigs', () => {
  it('sets and deletes single configs, and leaves the others, in every version', async () => {
    for (let version = 0; version <= 1; version++) {
      const world = await worldWith({ 'retention.ms': '1', 'segment.ms': '2' })
      const operations: Operation[] = [
        [SET, 'max.message.bytes', '3'],
        [DELETE, 'retention.ms'],
      ]
      expect(await alter(world, operations, false, version)).toBe('NONE')
      expect(setOf(world)).toEqual({ 'segment.ms': '2', 'max.message.bytes': '3' })
      expect(world.broker.describe('t').retention.ageMs).toBe(604_800_000)
    }
  })

  it('appends to a list what is not in it, and takes from it what is', async () => {
    const world = await worldWith()
    expect(await alter(world, [[APPEND, THROTTLED, '0:1,1:1']])).toBe('NONE')
    expect(await alter(world, [[APPEND, THROTTLED, '1:1,2:1']])).toBe('NONE')
    expect(setOf(world)).toEqual({ [THROTTLED]: '0:1,1:1,2:1' })
    expect(await alter(world, [[SUBTRACT, THROTTLED, '1:1,7:7']])).toBe('NONE')
    expect(setOf(world)).toEqual({ [THROTTLED]: '0:1,2:1' })
  })

  it('begins with the default where a list is not set', async () => {
    const { world } = await bootKafka(fileDisk())
    await world.kafka.configs.create('t', 1)
    expect(await alter(world, [[APPEND, 'cleanup.policy', 'compact']])).toBe('NONE')
    expect(setOf(world)).toEqual({ 'cleanup.policy': 'delete,compact' })
    expect(await alter(world, [[SUBTRACT, 'cleanup.policy', 'delete']])).toBe('NONE')
    expect(setOf(world)).toEqual({ 'cleanup.policy': 'compact' })
    expect(await alter(world, [[SUBTRACT, 'cleanup.policy', 'compact']])).toBe('INVALID_CONFIG')
  })

  it('deletes what is not set, or not known, without a complaint', async () => {
    const world = await worldWith()
    const operations: Operation[] = [
      [DELETE, 'retention.ms'],
      [DELETE, 'message.format.version', 'with a value'],
    ]
    expect(await alter(world, operations)).toBe('NONE')
  })

  it.each([
    ['an append to what is no list', [[APPEND, 'retention.ms', '1']], 'INVALID_CONFIG'],
    ['an append to what there is not', [[APPEND, 'x', '1']], 'INVALID_CONFIG'],
    ['an unknown operation', [[4, THROTTLED, '0:1']], 'INVALID_REQUEST'],
    ['a set without a value', [[SET, 'retention.ms']], 'INVALID_REQUEST'],
    ['an append without a value', [[APPEND, THROTTLED]], 'INVALID_REQUEST'],
    [
      'a config that is named twice',
      [
        [SET, 'retention.ms', '1'],
        [DELETE, 'retention.ms'],
      ],
      'INVALID_REQUEST',
    ],
    ['a value that is none', [[SET, 'retention.ms', 'x']], 'INVALID_CONFIG'],
    ['a compacted log in memory', [[SET, 'cleanup.policy', 'compact']], 'INVALID_CONFIG'],
  ] as const)('refuses %s, with all that stands beside it', async (_, operations, error) => {
    const world = await worldWith()
    expect(await alter(world, [[SET, 'segment.ms', '9'], ...operations])).toBe(error)
    expect(setOf(world)).toEqual({})
  })

  it('changes nothing where it is only to be checked', async () => {
    const world = await worldWith()
    expect(await alter(world, [[SET, 'retention.ms', '1']], true)).toBe('NONE')
    expect(await alter(world, [[SET, 'retention.ms', '-5']], true)).toBe('INVALID_CONFIG')
    expect(setOf(world)).toEqual({})
  })

  it('loses nothing of requests that come one behind the other', async () => {
    const world = await worldWith()
    await Promise.all(['0:0', '1:1', '2:2'].map((each) => alter(world, [[APPEND, THROTTLED, each]])))
    expect(setOf(world)).toEqual({ [THROTTLED]: '0:0,1:1,2:2' })
  })
})

describe('a list', () => {
  it('grows to 32,767 characters, and no further', async () => {
    const world = await worldWith()
    const many = (from: number, count: number): string =>
      Array.from({ length: count }, (_, i) => `${from + i}:1`).join(',')
    expect(await alter(world, [[APPEND, THROTTLED, many(10_000, 4_000)]])).toBe('NONE')
    expect(await alter(world, [[APPEND, THROTTLED, many(20_000, 4_000)]])).toBe('INVALID_CONFIG')
    expect(setOf(world)[THROTTLED]).toBe(many(10_000, 4_000))
  })
})
