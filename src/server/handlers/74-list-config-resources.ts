/**
 * ListConfigResources: what could have configs (KIP-1142).
 *
 *   0    client metrics, of which there are none here
 *   1    by type; without one, all of them
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { listConfigResources as api } from '../../wire/messages/74-list-config-resources.ts'
import { RESOURCE_TYPES } from '../config-values.ts'
import { type Handler, handler } from '../handler.ts'
import type { World } from '../world.ts'

const ALL: readonly number[] = Object.values(RESOURCE_TYPES)
const FIRST_WITH_TYPES = 1

export const listConfigResources: Handler = handler(api, ({ resourceTypes }, { version }, world) => {
  const given = version < FIRST_WITH_TYPES ? [RESOURCE_TYPES.clientMetrics] : resourceTypes
  const types = given.length === 0 ? ALL : [...new Set(given)]
  if (types.some((type) => !ALL.includes(type))) {
    return { throttleTimeMs: 0, errorCode: KAFKA_ERRORS.UNSUPPORTED_VERSION, configResources: [] }
  }
  const configResources = types.flatMap((resourceType) =>
    namesOf(resourceType, world).map((resourceName) => ({ resourceName, resourceType })),
  )
  return { throttleTimeMs: 0, errorCode: KAFKA_ERRORS.NONE, configResources }
})

function namesOf(type: number, { cluster, parts }: World): string[] {
  if (type === RESOURCE_TYPES.topic) return parts.topics.list().map(({ name }) => name)
  if (type === RESOURCE_TYPES.broker || type === RESOURCE_TYPES.brokerLogger) {
    return cluster.nodes.map(({ id }) => String(id))
  }
  // Groups and client metrics have no configs here.
  return []
}
