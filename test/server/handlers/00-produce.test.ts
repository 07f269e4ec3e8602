import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { DataWorld } from '../../support/kafka-data.ts'

describe('Produce', () => {
  it('appends a batch in every version, and what was produced is fetched', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    for (let version = 3; version <= 13; version++) {
      const { errorCode, baseOffset, logAppendTimeMs } = await world.produce(
        { values: [`v${version}`] },
        { version },
      )
      expect({ errorCode, baseOffset, logAppendTimeMs }).toEqual({
        errorCode: KAFKA_ERRORS.NONE,
        baseOffset: version - 3,
        logAppendTimeMs: -1,
      })
    }
    for (let version = 4; version <= 18; version++) {
      expect(await world.values({ version, offset: 9 })).toEqual(['v12', 'v13'])
    }
  })
})
