/**
 * DescribeCluster: brokers, cluster id, controller.
 *
 *   0
 *   1    whether brokers or controllers are asked for (KIP-919); controllers have no listener of their own here
 *   2    whether brokers are fenced: never
 */
import { UNKNOWN_OPERATIONS } from '../../wire/constants.ts'
import { describeCluster as api } from '../../wire/messages/60-describe-cluster.ts'
import { DONE, refused } from '../admin-errors.ts'
import { type Handler, handler } from '../handler.ts'
import { CLUSTER_OPERATIONS } from '../operations.ts'
import { brokersAt } from '../topic-view.ts'

const BROKERS = 1
const CONTROLLERS = 2

export const describeCluster: Handler = handler(api, (request, { listener }, world) => {
  const { endpointType, includeClusterAuthorizedOperations } = request
  if (endpointType !== BROKERS) {
    const outcome =
      endpointType === CONTROLLERS
        ? refused('MISMATCHED_ENDPOINT_TYPE', 'this is a listener of brokers')
        : refused('UNSUPPORTED_ENDPOINT_TYPE', `there are no endpoints of the type ${endpointType}`)
    return { throttleTimeMs: 0, ...outcome, endpointType: BROKERS, clusterId: '', brokers: [] }
  }
  const { id: clusterId, controller } = world.cluster
  return {
    throttleTimeMs: 0,
    ...DONE,
    endpointType,
    clusterId,
    controllerId: controller.id,
    brokers: brokersAt(listener, world).map(({ id, ...address }) => {
      return { brokerId: id, ...address, rack: null, isFenced: false }
    }),
    clusterAuthorizedOperations: includeClusterAuthorizedOperations ? CLUSTER_OPERATIONS : UNKNOWN_OPERATIONS,
  }
})
