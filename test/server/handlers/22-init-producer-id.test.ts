import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { initProducerId } from '../../../src/wire/messages/22-init-producer-id.ts'
import { KafkaWorld } from '../../support/kafka.ts'

const IDEMPOTENT = { transactionalId: null, transactionTimeoutMs: 60_000 }

describe('InitProducerId without a transactional id', () => {
  it('gives every producer an id of its own and epoch 0, in every version', async () => {
    const { send } = new KafkaWorld()
    for (let version = 0; version <= 5; version++) {
      const { errorCode, producerId, producerEpoch } = await send(initProducerId, version, IDEMPOTENT)
      expect({ errorCode, producerId, producerEpoch }).toEqual({
        errorCode: 0,
        producerId: version,
        producerEpoch: 0,
      })
    }
  })

  it('gives a new id also to one that names the id it has', async () => {
    const { send } = new KafkaWorld()
    await send(initProducerId, 5, IDEMPOTENT)
    const again = await send(initProducerId, 5, { ...IDEMPOTENT, producerId: 0, producerEpoch: 3 })
    expect(again).toMatchObject({ errorCode: 0, producerId: 1, producerEpoch: 0 })
  })

  it('refuses an id without an epoch, and an epoch without an id', async () => {
    const { send } = new KafkaWorld()
    const refused = { errorCode: KAFKA_ERRORS.INVALID_REQUEST, producerId: -1, producerEpoch: -1 }
    expect(await send(initProducerId, 3, { ...IDEMPOTENT, producerId: 4 })).toMatchObject(refused)
    expect(await send(initProducerId, 3, { ...IDEMPOTENT, producerEpoch: 4 })).toMatchObject(refused)
  })
})
