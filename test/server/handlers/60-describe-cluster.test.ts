import { describe, expect, it } from 'vitest'
import { UNKNOWN_OPERATIONS } from '../../../src/wire/constants.ts'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { describeCluster } from '../../../src/wire/messages/60-describe-cluster.ts'
import { KafkaWorld } from '../../support/kafka.ts'

const PLAIN = { includeClusterAuthorizedOperations: false, includeFencedBrokers: false }

describe('DescribeCluster', () => {
  it('answers every broker where its listener reaches it, whichever is asked, in every version', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    for (let version = 0; version <= 2; version++) {
      for (const node of [0, 1]) {
        expect(await world.send(describeCluster, version, PLAIN, { node })).toMatchObject({
          errorCode: 0,
          errorMessage: null,
          endpointType: 1,
          clusterId: world.kafka.cluster.id,
          controllerId: 0,
          brokers: [
            { brokerId: 0, host: 'localhost', port: 9092, rack: null, isFenced: false },
            { brokerId: 1, host: 'localhost', port: 9093, rack: null, isFenced: false },
          ],
          clusterAuthorizedOperations: UNKNOWN_OPERATIONS,
        })
      }
    }
  })

  it('answers what the client may do where that is asked for: everything', async () => {
    const request = { ...PLAIN, includeClusterAuthorizedOperations: true }
    const { clusterAuthorizedOperations: bits } = await new KafkaWorld().send(describeCluster, 2, request)
    // CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE.
    const operations = Array.from({ length: 32 }, (_, i) => i).filter((i) => bits & (1 << i))
    expect(operations).toEqual([5, 7, 8, 9, 10, 11, 12])
  })

  it.each([
    ['controllers, which have no listener of their own', 2, 'MISMATCHED_ENDPOINT_TYPE'],
    ['what there is not', 3, 'UNSUPPORTED_ENDPOINT_TYPE'],
  ])('refuses to describe %s', async (_, endpointType, error) => {
    const response = await new KafkaWorld().send(describeCluster, 1, { ...PLAIN, endpointType })
    expect(kafkaErrorName(response.errorCode)).toBe(error)
    expect(response.brokers).toEqual([])
  })
})
