import { describe, expect, it } from 'vitest'
import { RESOURCE_TYPES } from '../../../src/server/config-values.ts'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { alterConfigs } from '../../../src/wire/messages/33-alter-configs.ts'
import { KafkaWorld } from '../../support/kafka.ts'

type Texts = readonly (readonly [name: string, value: string | null])[]

function resource(resourceType: number, resourceName: string, texts: Texts = []) {
  return { resourceType, resourceName, configs: texts.map(([name, value]) => ({ name, value })) }
}

function topic(name: string, texts: Texts = []) {
  return resource(RESOURCE_TYPES.topic, name, texts)
}

async function alter(
  world: KafkaWorld,
  resources: readonly ReturnType<typeof resource>[],
  validateOnly = false,
  version = 2,
) {
  const { responses } = await world.send(alterConfigs, version, { resources, validateOnly })
  return responses.map(({ resourceType, resourceName, errorCode, errorMessage }, i) => {
    expect({ resourceType, resourceName }).toMatchObject({
      resourceType: resources[i]?.resourceType,
      resourceName: resources[i]?.resourceName,
    })
    expect(errorMessage === null).toBe(errorCode === 0)
    return kafkaErrorName(errorCode)
  })
}

function setOf({ kafka }: KafkaWorld, name: string) {
  return kafka.configs.setOf(kafka.parts.topics.require(name))
}

describe('AlterConfigs', () => {
  it('replaces all that was set, in every version', async () => {
    const world = new KafkaWorld()
    await world.kafka.configs.create('t', 1, { 'retention.ms': '1' })
    for (let version = 0; version <= 2; version++) {
      expect(await alter(world, [topic('t', [['segment.ms', String(version + 1)]])], false, version)).toEqual(
        ['NONE'],
      )
      expect(setOf(world, 't')).toEqual({ 'segment.ms': String(version + 1) })
    }
    expect(world.broker.describe('t').retention.ageMs).toBe(604_800_000)
  })

  it('changes nothing where it is only to be checked, or where a part of it is refused', async () => {
    const world = new KafkaWorld()
    await world.kafka.configs.create('t', 1, { 'retention.ms': '1' })
    expect(await alter(world, [topic('t', [['segment.ms', '5']])], true)).toEqual(['NONE'])
    expect(await alter(world, [topic('t', [['segment.ms', '-5']])], true)).toEqual(['INVALID_CONFIG'])
    const half = topic('t', [
      ['segment.ms', '5'],
      ['segment.bytes', '5'],
    ])
    expect(await alter(world, [half])).toEqual(['INVALID_CONFIG'])
    expect(setOf(world, 't')).toEqual({ 'retention.ms': '1' })
  })

  it('answers each resource on its own, in the order of the request', async () => {
    const world = new KafkaWorld()
    await world.kafka.configs.create('a', 1)
    await world.kafka.configs.create('b', 1)
    const resources = [
      topic('missing'),
      topic('a', [['segment.ms', '5']]),
      topic('b'),
      topic('b', [['segment.ms', '5']]),
    ]
    expect(await alter(world, resources)).toEqual([
      'UNKNOWN_TOPIC_OR_PARTITION',
      'NONE',
      'INVALID_REQUEST',
      'INVALID_REQUEST',
    ])
    expect(setOf(world, 'a')).toEqual({ 'segment.ms': '5' })
    expect(setOf(world, 'b')).toEqual({})
  })

  it.each([
    ['a config without a value', topic('t', [['segment.ms', null]]), 'INVALID_REQUEST'],
    [
      'a config that is there twice',
      topic('t', [
        ['segment.ms', '1'],
        ['segment.ms', '1'],
      ]),
      'INVALID_REQUEST',
    ],
    ['a config that there is not', topic('t', [['segment', '1']]), 'INVALID_CONFIG'],
    ['a config that every object seems to have', topic('t', [['__proto__', '1']]), 'INVALID_CONFIG'],
    [
      'a config of a broker',
      resource(RESOURCE_TYPES.broker, '0', [['log.retention.ms', '1']]),
      'INVALID_REQUEST',
    ],
    [
      'the level of a logger',
      resource(RESOURCE_TYPES.brokerLogger, '0', [['root', 'DEBUG']]),
      'INVALID_REQUEST',
    ],
    ['a config of a group', resource(RESOURCE_TYPES.group, 'g', [['x', '1']]), 'INVALID_REQUEST'],
    ['a type that there is not', resource(99, 'x'), 'INVALID_REQUEST'],
  ])('refuses %s', async (_, asked, error) => {
    const world = new KafkaWorld()
    await world.kafka.configs.create('t', 1)
    expect(await alter(world, [asked])).toEqual([error])
    expect(setOf(world, 't')).toEqual({})
  })

  it('says of configs of a broker how else to get there', async () => {
    const asked: [string, string][] = [
      ['log.retention.ms', '1'],
      ['num.io.threads', '8'],
    ]
    const resources = [resource(RESOURCE_TYPES.broker, '', asked)]
    const { responses } = await new KafkaWorld().send(alterConfigs, 2, { resources, validateOnly: false })
    expect(responses[0]?.errorMessage).toBe(
      'log.retention.ms does not change while the broker runs: set retention.ms of topics; ' +
        'num.io.threads does not change while the broker runs: it is started with its configs',
    )
  })

  it('takes no change of a broker for done', async () => {
    expect(await alter(new KafkaWorld(), [resource(RESOURCE_TYPES.broker, '0')])).toEqual(['NONE'])
  })
})
