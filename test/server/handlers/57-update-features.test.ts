import { describe, expect, it } from 'vitest'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { apiVersions } from '../../../src/wire/messages/18-api-versions.ts'
import { updateFeatures } from '../../../src/wire/messages/57-update-features.ts'
import { KafkaWorld } from '../../support/kafka.ts'

type Levels = readonly (readonly [feature: string, level: number])[]

async function update({ send }: KafkaWorld, levels: Levels, version = 2) {
  const featureUpdates = levels.map(([feature, maxVersionLevel]) => {
    return { feature, maxVersionLevel, allowDowngrade: true, upgradeType: 3 }
  })
  const { errorCode, results } = await send(updateFeatures, version, { featureUpdates, validateOnly: false })
  return { error: kafkaErrorName(errorCode), results: results.map(({ feature }) => feature) }
}

async function finalized({ send }: KafkaWorld): Promise<Levels> {
  const client = { clientSoftwareName: 'test', clientSoftwareVersion: '1' }
  const { finalizedFeatures } = await send(apiVersions, 4, client)
  return finalizedFeatures.map(({ name, maxVersionLevel }) => [name, maxVersionLevel] as const)
}

describe('UpdateFeatures', () => {
  it('grants the levels that ApiVersions tells, in every version', async () => {
    const world = new KafkaWorld()
    const levels = await finalized(world)
    expect(levels.length).toBeGreaterThan(0)
    for (let version = 0; version <= 2; version++) {
      expect(await update(world, levels, version)).toEqual({
        error: 'NONE',
        results: version < 2 ? levels.map(([feature]) => feature) : [],
      })
    }
  })

  it('refuses another level, and a feature that there is not, in favour of no other in the request', async () => {
    const world = new KafkaWorld()
    const [[feature, level]] = (await finalized(world)) as [readonly [string, number]]
    const refused = { error: 'INVALID_UPDATE_VERSION', results: [] }
    expect(await update(world, [[feature, level - 1]], 1)).toEqual(refused)
    expect(await update(world, [[feature, level + 1]])).toEqual(refused)
    const both: Levels = [
      [feature, level],
      ['flying.saucers', 1],
    ]
    expect(await update(world, both, 1)).toEqual(refused)
  })

  it('refuses a feature that is there twice', async () => {
    const world = new KafkaWorld()
    const levels = await finalized(world)
    expect((await update(world, [...levels, ...levels])).error).toBe('INVALID_REQUEST')
  })
})
