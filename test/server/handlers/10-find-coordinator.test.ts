/** FindCoordinator at the wire: the node of a key, at the address of the listener that was asked. */
import { describe, expect, it } from 'vitest'
import type { Node } from '../../../src/server/cluster.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { findCoordinator } from '../../../src/wire/messages/10-find-coordinator.ts'
import { KafkaWorld } from '../../support/kafka.ts'

const NOWHERE = { nodeId: -1, host: '', port: -1 }

describe('FindCoordinator', () => {
  it.each([0, 1, 2, 3])('of one key, in version %i', async (version) => {
    const world = new KafkaWorld({ nodes: 3 })
    const { id } = world.kafka.cluster.coordinatorOf('group', 'g')
    expect(await world.send(findCoordinator, version, { key: 'g' })).toMatchObject({
      errorCode: 0,
      errorMessage: null,
      nodeId: id,
      host: 'localhost',
      port: 9092 + id,
    })
  })

  it.each([4, 5, 6])('of several keys, in version %i', async (version) => {
    const world = new KafkaWorld({ nodes: 3 })
    const coordinatorKeys = ['a', 'b', 'c', 'd']
    const { coordinators } = await world.send(findCoordinator, version, { coordinatorKeys, keyType: 1 })
    expect(coordinators.map(({ key, nodeId, port, errorCode }) => [key, nodeId, port, errorCode])).toEqual(
      coordinatorKeys.map((key) => {
        const { id } = world.kafka.cluster.coordinatorOf('transaction', key)
        return [key, id, 9092 + id, 0]
      }),
    )
  })

  it('may be another node for each kind of key, and follows a coordinator that moves', async () => {
    const world = new KafkaWorld({ nodes: 3 })
    const { cluster } = world.kafka
    for (const [keyType, kind] of (['group', 'transaction', 'share'] as const).entries()) {
      for (const node of cluster.nodes) {
        cluster.moveCoordinator(kind, 'k', node)
        const { coordinators } = await world.send(findCoordinator, 6, { coordinatorKeys: ['k'], keyType })
        expect(coordinators[0]).toMatchObject({ nodeId: node.id, errorCode: 0 })
      }
    }
  })

  it.each([
    [6, 3],
    [6, -1],
    [5, 2],
    [3, 2],
  ])('knows no key, in version %i, of type %i', async (version, keyType) => {
    const world = new KafkaWorld()
    const response = await world.send(findCoordinator, version, { key: 'k', coordinatorKeys: ['k'], keyType })
    const found = version < 4 ? response : response.coordinators[0]
    expect(found).toMatchObject({ ...NOWHERE, errorCode: KAFKA_ERRORS.INVALID_REQUEST })
    expect(found?.errorMessage).toContain('no type of key')
  })

  it('is told nothing where the node has no such listener', async () => {
    const world = new KafkaWorld()
    const [node] = world.kafka.cluster.nodes as [Node]
    ;(node.advertised as Map<string, unknown>).clear()
    expect(await world.send(findCoordinator, 3, { key: 'g' })).toMatchObject({
      ...NOWHERE,
      errorCode: KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE,
    })
  })
})
