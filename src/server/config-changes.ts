/**
 * Changes of configs, as AlterConfigs and IncrementalAlterConfigs ask for them: one resource at a time, all that is asked
 * of it or nothing.
 */
import { DONE, type Outcome, outcomeOf, Refusal, refused, repeated } from './admin-errors.ts'
import { TOPIC_CONFIGS } from './config-definitions.ts'
import { RESOURCE_TYPES } from './config-values.ts'
import type { ConfigTexts } from './topic-configs.ts'
import { Turns } from './turns.ts'
import type { World } from './world.ts'

export interface Changed {
  readonly resourceType: number
  readonly resourceName: string
  readonly configs: readonly { readonly name: string; readonly value: string | null }[]
}

export type Change<R extends Changed> = (resource: R, set: ConfigTexts) => ConfigTexts

type Result = Pick<Changed, 'resourceType' | 'resourceName'> & Outcome

/** In the order of the request. */
export async function changeAll<R extends Changed>(
  resources: readonly R[],
  validateOnly: boolean,
  world: World,
  change: Change<R>,
): Promise<Result[]> {
  const twice = repeated(resources.map(keyOf))
  return new Turns(world.parts.ctx).each(resources, async (resource): Promise<Result> => {
    const { resourceType, resourceName } = resource
    const outcome = twice.has(keyOf(resource))
      ? refused('INVALID_REQUEST', 'a resource is named twice')
      : await changed(resource, validateOnly, world, change).catch((error) => outcomeOf(error))
    return { resourceType, resourceName, ...outcome }
  })
}

function keyOf({ resourceType, resourceName }: Changed): string {
  return `${resourceType} ${resourceName}`
}

async function changed<R extends Changed>(
  resource: R,
  validateOnly: boolean,
  world: World,
  change: Change<R>,
): Promise<Outcome> {
  const { resourceType, resourceName, configs } = resource
  const [again] = repeated(configs.map(({ name }) => name))
  if (again !== undefined) throw new Refusal('INVALID_REQUEST', `${again} is there twice`)
  if (resourceType === RESOURCE_TYPES.topic) {
    await world.configs.alter(resourceName, (set) => change(resource, set), validateOnly)
    return DONE
  }
  if (resourceType === RESOURCE_TYPES.broker) {
    if (configs.length === 0) return DONE
    throw new Refusal('INVALID_REQUEST', configs.map(({ name }) => whyNot(name)).join('; '))
  }
  throw new Refusal('INVALID_REQUEST', `configs of resources of the type ${resourceType} do not change here`)
}

/** Of a config of the broker: none of them changes while it runs. */
function whyNot(name: string): string {
  const ofTopics = [...TOPIC_CONFIGS.values()].find(({ broker }) => broker === name)
  return ofTopics === undefined
    ? `${name} does not change while the broker runs: it is started with its configs`
    : `${name} does not change while the broker runs: set ${ofTopics.name} of topics`
}

/** @throws Refusal where there is none */
export function textOf({ name, value }: Changed['configs'][number]): string {
  if (value === null) throw new Refusal('INVALID_REQUEST', `${name} has no value`)
  return value
}
