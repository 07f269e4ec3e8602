/**
 * AlterConfigs: replaces all that is set for a resource. What is not named goes back to its default: a client that means
 * one config uses IncrementalAlterConfigs.
 *
 *   0–1
 *   2    flexible
 */
import { alterConfigs as api } from '../../wire/messages/33-alter-configs.ts'
import { changeAll, textOf } from '../config-changes.ts'
import { type Handler, handler } from '../handler.ts'

export const alterConfigs: Handler = handler(api, async ({ resources, validateOnly }, _call, world) => {
  const responses = await changeAll(resources, validateOnly, world, ({ configs }) =>
    Object.fromEntries(configs.map((config) => [config.name, textOf(config)])),
  )
  return { throttleTimeMs: 0, responses }
})
