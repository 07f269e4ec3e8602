import { describe, expect, it } from 'vitest'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { listConfigResources } from '../../../src/wire/messages/74-list-config-resources.ts'
import { KafkaWorld } from '../../support/kafka.ts'

const [TOPIC, BROKER, LOGGER, METRICS, GROUP] = [2, 4, 8, 16, 32] as const

async function list({ send }: KafkaWorld, resourceTypes: readonly number[], version = 1) {
  const { errorCode, configResources } = await send(listConfigResources, version, { resourceTypes })
  const told = configResources.map(({ resourceType, resourceName }) => `${resourceType} ${resourceName}`)
  return { error: kafkaErrorName(errorCode), told }
}

describe('ListConfigResources', () => {
  it('answers what could have configs, all of it or by type', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    await world.broker.createTopic('a')
    await world.broker.createTopic('b')
    expect(await list(world, [TOPIC])).toEqual({ error: 'NONE', told: ['2 a', '2 b'] })
    expect(await list(world, [BROKER, BROKER])).toEqual({ error: 'NONE', told: ['4 0', '4 1'] })
    expect(await list(world, [GROUP, METRICS])).toEqual({ error: 'NONE', told: [] })
    const { told } = await list(world, [])
    expect([...told].sort()).toEqual(['2 a', '2 b', '4 0', '4 1', `${LOGGER} 0`, `${LOGGER} 1`])
  })

  it('answers client metrics alone in version 0, and there are none', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('a')
    expect(await list(world, [], 0)).toEqual({ error: 'NONE', told: [] })
  })

  it('refuses a type that there is not', async () => {
    expect(await list(new KafkaWorld(), [TOPIC, 3])).toEqual({ error: 'UNSUPPORTED_VERSION', told: [] })
  })
})
