/**
 * DescribeConfigs: what topics and brokers go by, and where each value comes from.
 *
 *   1    synonyms, and sources instead of `is default`
 *   3    types, and documentation where it is asked for
 *   4    flexible
 *
 * What is special here: brokers have no configs that change while they run, and no loggers; groups and client metrics have
 * no configs.
 */
import { checkTopicName } from '../../core/names.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { describeConfigs as api } from '../../wire/messages/32-describe-configs.ts'
import { DONE, outcomeOf, Refusal, refused } from '../admin-errors.ts'
import { brokerEntries, type ConfigEntry, topicEntries } from '../config-entries.ts'
import { RESOURCE_TYPES } from '../config-values.ts'
import { type Handler, handler } from '../handler.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>
type Resource = Request['resources'][number]
type Result = ResponseInputOf<typeof api>['results'][number]

export const describeConfigs: Handler = handler(api, async (request, _call, world) => {
  let told = 0
  const results = await new Turns(world.parts.ctx).each(distinct(request.resources), (resource): Result => {
    if (told >= MAX_TOLD) return { ...resource, ...TOO_MANY, configs: [] }
    const result = resultOf(resource, request, world)
    told += result.configs.length
    return result
  })
  return { throttleTimeMs: 0, results }
})

/** Configs in one answer: those of more than 5,000 topics. */
const MAX_TOLD = 250_000
const TOO_MANY = refused(
  'POLICY_VIOLATION',
  'these are too many configs for one answer: ask for fewer at once',
)

/** An answer is some hundred times as large as the question, so none is given twice. */
function distinct(resources: readonly Resource[]): Resource[] {
  const first = new Map<string, Resource>()
  for (const resource of resources) {
    const key = `${resource.resourceType} ${resource.resourceName}`
    if (!first.has(key)) first.set(key, resource)
  }
  return [...first.values()]
}

function resultOf(
  { resourceType, resourceName, configurationKeys }: Resource,
  { includeSynonyms, includeDocumentation }: Request,
  world: World,
): Result {
  const resource = { resourceType, resourceName }
  try {
    const keys =
      configurationKeys === null || configurationKeys.length === 0 ? null : new Set(configurationKeys)
    const configs = entriesOf(resourceType, resourceName, world)
      .filter(({ name }) => keys === null || keys.has(name))
      .map(({ synonyms, documentation, ...entry }) => ({
        ...entry,
        synonyms: includeSynonyms ? synonyms : [],
        documentation: includeDocumentation ? documentation : null,
      }))
    return { ...resource, ...DONE, configs }
  } catch (error) {
    return { ...resource, ...outcomeOf(error), configs: [] }
  }
}

function entriesOf(type: number, name: string, world: World): ConfigEntry[] {
  switch (type) {
    case RESOURCE_TYPES.topic:
      return topicEntries(
        world.configs,
        world.configs.setOf(world.parts.topics.require(checkTopicName(name))),
      )
    case RESOURCE_TYPES.broker:
      // Without a name: what holds for all brokers, as far as it was set while they run.
      return name === '' ? [] : brokerEntries(world, brokerOf(name, world))
    case RESOURCE_TYPES.brokerLogger:
      brokerOf(name, world)
      return []
    case RESOURCE_TYPES.clientMetrics:
    case RESOURCE_TYPES.group:
      if (name === '') throw new Refusal('INVALID_REQUEST', 'a group or a subscription has a name')
      return []
    default:
      throw new Refusal('INVALID_REQUEST', `there are no resources of the type ${type}`)
  }
}

/** Any node knows the others: they are one process. */
function brokerOf(name: string, { cluster }: World): number {
  const node = cluster.nodes.find(({ id }) => String(id) === name)
  if (node === undefined) throw new Refusal('INVALID_REQUEST', `there is no broker "${name}"`)
  return node.id
}
