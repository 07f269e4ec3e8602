import { describe, expect, it } from 'vitest'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import { TOPIC_CONFIGS } from '../../../src/server/config-definitions.ts'
import { CONFIG_TYPES, RESOURCE_TYPES } from '../../../src/server/config-values.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import type { ResponseOf } from '../../../src/wire/api.ts'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { describeConfigs } from '../../../src/wire/messages/32-describe-configs.ts'
import { KafkaWorld } from '../../support/kafka.ts'

type Config = ResponseOf<typeof describeConfigs>['results'][number]['configs'][number]

interface Asked {
  readonly keys?: readonly string[] | null
  readonly version?: number
  readonly includeSynonyms?: boolean
  readonly includeDocumentation?: boolean
}

async function describeOne(
  world: KafkaWorld,
  type: keyof typeof RESOURCE_TYPES,
  name: string,
  asked: Asked = {},
) {
  const { keys = null, version = 4, includeSynonyms = false, includeDocumentation = false } = asked
  const resources = [{ resourceType: RESOURCE_TYPES[type], resourceName: name, configurationKeys: keys }]
  const { results } = await world.send(describeConfigs, version, {
    resources,
    includeSynonyms,
    includeDocumentation,
  })
  expect(results).toMatchObject([{ resourceType: RESOURCE_TYPES[type], resourceName: name }])
  const { errorCode, configs } = results[0] as (typeof results)[number]
  return { error: kafkaErrorName(errorCode), configs: new Map(configs.map((each) => [each.name, each])) }
}

function inMemory(options: object = {}): KafkaWorld {
  return new KafkaWorld({ engine: memoryEngine({ clock: new ManualClock() }), ...options })
}

describe('DescribeConfigs of a topic', () => {
  it('answers every config that there is, with its type, in every version', async () => {
    const world = inMemory()
    await world.kafka.configs.create('t', 1, { 'retention.ms': '5' })
    for (let version = 1; version <= 4; version++) {
      const { error, configs } = await describeOne(world, 'topic', 't', { version })
      expect(error).toBe('NONE')
      expect([...configs.keys()]).toEqual([...TOPIC_CONFIGS.keys()])
      expect(configs.get('retention.ms')).toMatchObject({
        value: '5',
        readOnly: false,
        isSensitive: false,
        configSource: 1,
        synonyms: [],
        configType: version < 3 ? 0 : CONFIG_TYPES.long,
        documentation: null,
      })
    }
  })

  it('answers those that are asked for alone, and all of them for an empty list', async () => {
    const world = inMemory()
    await world.kafka.configs.create('t', 1)
    const { configs } = await describeOne(world, 'topic', 't', {
      keys: ['segment.ms', 'x', 'cleanup.policy'],
    })
    expect([...configs.keys()]).toEqual(['cleanup.policy', 'segment.ms'])
    const all = await describeOne(world, 'topic', 't', { keys: [] })
    expect(all.configs.size).toBe(TOPIC_CONFIGS.size)
  })

  it('tells where a value comes from, and what would hold without it', async () => {
    const world = inMemory()
    await world.kafka.configs.create('t', 1, { 'retention.ms': '5' })
    const { configs } = await describeOne(world, 'topic', 't', { includeSynonyms: true })
    const told = (name: string) => {
      const { configSource, synonyms } = configs.get(name) as Config
      return [configSource, ...synonyms.map(({ name, value, source }) => `${name}=${value}:${source}`)]
    }
    expect(told('retention.ms')).toEqual([1, 'retention.ms=5:1', 'log.retention.ms=604800000:5'])
    expect(told('max.message.bytes')).toEqual([5, 'message.max.bytes=1048588:5'])
    // In memory the engine gives a bound, as an option of a broker would.
    expect(told('retention.bytes')).toEqual([
      4,
      'log.retention.bytes=268435456:4',
      'log.retention.bytes=-1:5',
    ])
    expect(told('odradek.retention.records')).toEqual([
      4,
      'odradek.retention.records=65536:4',
      'odradek.retention.records=-1:5',
    ])
  })

  it('documents configs where that is asked for', async () => {
    const world = inMemory()
    await world.kafka.configs.create('t', 1)
    const { configs } = await describeOne(world, 'topic', 't', { includeDocumentation: true })
    for (const { documentation } of configs.values()) expect(documentation).toMatch(/^[A-Z].+\.$/)
  })

  it('shows what a topic that was made in process really does', async () => {
    const world = inMemory()
    await world.broker.createTopic('t', { retention: { records: 7 } })
    const { configs } = await describeOne(world, 'topic', 't')
    expect(configs.get('retention.ms')).toMatchObject({ value: '-1', configSource: 1 })
    expect(configs.get('odradek.retention.records')).toMatchObject({ value: '7', configSource: 1 })
  })

  it('refuses one that there is not, and a name that no topic has', async () => {
    const world = inMemory()
    expect(await describeOne(world, 'topic', 'missing')).toMatchObject({
      error: 'UNKNOWN_TOPIC_OR_PARTITION',
      configs: new Map(),
    })
    expect((await describeOne(world, 'topic', 'a b')).error).toBe('INVALID_TOPIC_EXCEPTION')
  })
})

describe('DescribeConfigs of other things', () => {
  it('answers what each broker goes by, read-only, whichever of them is asked', async () => {
    const groups = { maxSize: 7 }
    const world = inMemory({ nodes: 2, defaultPartitions: 3, autoCreateTopics: false, groups })
    const { error, configs } = await describeOne(world, 'broker', '1')
    expect(error).toBe('NONE')
    const value = (name: string) => configs.get(name)?.value
    expect(value('node.id')).toBe('1')
    expect(value('num.partitions')).toBe('3')
    expect(value('auto.create.topics.enable')).toBe('false')
    expect(value('group.max.size')).toBe('7')
    expect(value('group.min.session.timeout.ms')).toBe('6000')
    expect(value('advertised.listeners')).toBe('PLAINTEXT://localhost:9093')
    expect(value('log.retention.bytes')).toBe('268435456')
    expect(value('log.retention.ms')).toBe('604800000')
    expect(value('offsets.retention.minutes')).toBe('10080')
    for (const { readOnly } of configs.values()) expect(readOnly).toBe(true)
    expect([...configs.keys()]).toEqual([...configs.keys()].sort())
  })

  it.each([
    [90_000, '2'],
    [Number.POSITIVE_INFINITY, '2147483647'],
  ])('answers how long offsets are kept in whole minutes: %d ms', async (offsetRetentionMs, minutes) => {
    const { configs } = await describeOne(inMemory({ broker: { offsetRetentionMs } }), 'broker', '0')
    expect(configs.get('offsets.retention.minutes')?.value).toBe(minutes)
  })

  it('answers nothing for all brokers together, their loggers, groups and client metrics', async () => {
    const world = inMemory()
    for (const [type, name] of [
      ['broker', ''],
      ['brokerLogger', '0'],
      ['group', 'g'],
      ['clientMetrics', 'm'],
    ] as const) {
      expect(await describeOne(world, type, name)).toEqual({ error: 'NONE', configs: new Map() })
    }
  })

  it.each([
    ['broker', '7'],
    ['broker', 'x'],
    ['brokerLogger', ''],
    ['brokerLogger', '7'],
    ['group', ''],
    ['clientMetrics', ''],
  ] as const)('refuses %s "%s"', async (type, name) => {
    expect((await describeOne(inMemory(), type, name)).error).toBe('INVALID_REQUEST')
  })

  it('answers for a resource once, however often it is named', async () => {
    const resources = ['0', '0', ''].map((resourceName) => ({
      resourceType: 4,
      resourceName,
      configurationKeys: null,
    }))
    const { results } = await inMemory().send(describeConfigs, 4, { resources, includeSynonyms: false })
    expect(results.map(({ resourceName }) => resourceName)).toEqual(['0', ''])
  })

  it('refuses a type that there is not, and answers the rest of the request', async () => {
    const resources = [3, 4].map((resourceType) => ({
      resourceType,
      resourceName: '0',
      configurationKeys: null,
    }))
    const { results } = await inMemory().send(describeConfigs, 4, { resources, includeSynonyms: false })
    expect(results.map(({ errorCode }) => kafkaErrorName(errorCode))).toEqual(['INVALID_REQUEST', 'NONE'])
  })
})
