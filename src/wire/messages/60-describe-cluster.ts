/** DescribeCluster: brokers, cluster id, controller. */
import { api } from '../api.ts'
import { UNKNOWN_OPERATIONS } from '../constants.ts'
import { array, boolean, int8, int16, int32, string, words } from '../schema.ts'

export const describeCluster = api({
  key: 60,
  name: 'DescribeCluster',
  versions: [0, 2],
  flexibleSince: 0,
  request: {
    includeClusterAuthorizedOperations: boolean,
    endpointType: int8.or(1).since(1),
    includeFencedBrokers: boolean.since(2),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: words.nullable(),
    endpointType: int8.or(1).since(1),
    clusterId: string,
    controllerId: int32.or(-1),
    brokers: array({
      brokerId: int32,
      host: string,
      port: int32,
      rack: string.nullable(),
      isFenced: boolean.since(2),
    }),
    clusterAuthorizedOperations: int32.or(UNKNOWN_OPERATIONS),
  },
})
