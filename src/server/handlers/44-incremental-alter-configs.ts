/**
 * IncrementalAlterConfigs: changes single configs of a resource (KIP-339), all of a request's or none of them.
 *
 *   0
 *   1    flexible
 *
 *   SET 0      to this value
 *   DELETE 1   back to the default
 *   APPEND 2   to a list, what is not in it
 *   SUBTRACT 3 from a list
 */
import type { RequestOf } from '../../wire/api.ts'
import { incrementalAlterConfigs as api } from '../../wire/messages/44-incremental-alter-configs.ts'
import { Refusal } from '../admin-errors.ts'
import { changeAll, textOf } from '../config-changes.ts'
import { TOPIC_CONFIGS } from '../config-definitions.ts'
import { itemsOf, MAX_LENGTH } from '../config-values.ts'
import { type Handler, handler } from '../handler.ts'
import type { ConfigTexts } from '../topic-configs.ts'
import type { World } from '../world.ts'

type Resource = RequestOf<typeof api>['resources'][number]
type Alteration = Resource['configs'][number]

const OPERATIONS = { set: 0, delete: 1, append: 2, subtract: 3 } as const

export const incrementalAlterConfigs: Handler = handler(api, async (request, _call, world) => {
  const responses = await changeAll(request.resources, request.validateOnly, world, (resource, set) =>
    changedBy(resource.configs, set, world),
  )
  return { throttleTimeMs: 0, responses }
})

function changedBy(alterations: readonly Alteration[], set: ConfigTexts, world: World): ConfigTexts {
  const texts = new Map(Object.entries(set))
  for (const alteration of alterations) {
    const { name, configOperation } = alteration
    if (configOperation === OPERATIONS.delete) texts.delete(name)
    else if (configOperation === OPERATIONS.set) texts.set(name, textOf(alteration))
    else texts.set(name, listWith(alteration, texts.get(name) ?? world.configs.defaults.get(name) ?? ''))
  }
  return Object.fromEntries(texts)
}

function listWith(alteration: Alteration, text: string): string {
  const { name, configOperation } = alteration
  const adds = configOperation === OPERATIONS.append
  if (!adds && configOperation !== OPERATIONS.subtract) {
    throw new Refusal('INVALID_REQUEST', `there is no operation ${configOperation}`)
  }
  if (TOPIC_CONFIGS.get(name)?.type !== 'list') {
    throw new Refusal('INVALID_CONFIG', `${name} is no list, which could be added to or taken from`)
  }
  const items = itemsOf(text)
  const given = new Set(itemsOf(textOf(alteration)))
  const result = adds ? new Set([...items, ...given]) : items.filter((each) => !given.has(each))
  const list = [...result].join(',')
  // What would be refused in the end need not grow until then.
  if (list.length > MAX_LENGTH)
    throw new Refusal('INVALID_CONFIG', `${name} has at most ${MAX_LENGTH} characters`)
  return list
}
