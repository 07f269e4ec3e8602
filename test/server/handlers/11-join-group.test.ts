import { expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { heartbeat } from '../../../src/wire/messages/12-heartbeat.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

it('a consumer joins, syncs, heartbeats, commits and fetches what it committed', async () => {
  const world = new KafkaWorld()
  await world.broker.createTopic('orders', { partitions: 2 })
  const client = new GroupClient(world)
  const joined = await client.joinAll()
  expect(joined).toMatchObject({
    errorCode: 0,
    generationId: 1,
    protocolName: 'range',
    leader: client.memberId,
  })
  const synced = await client.sync([[client.memberId, [['orders', [0, 1]]]]])
  expect(synced.errorCode).toBe(KAFKA_ERRORS.NONE)
  const beat = { groupId: 'g', generationId: 1, memberId: client.memberId, groupInstanceId: null }
  expect(await world.send(heartbeat, 4, beat)).toMatchObject({ errorCode: 0 })
  expect(await client.commit('orders', 1, 42, 'note')).toBe(KAFKA_ERRORS.NONE)
  expect(await client.committed('orders', 1)).toMatchObject({ committedOffset: 42, metadata: 'note' })
})
