/**
 * UpdateFeatures: levels of what a cluster can do (KIP-584). Here they are those of the version that runs, always the
 * highest: asking for these is granted, anything else is not.
 *
 *   0    `allowDowngrade`
 *   1    kinds of updates, and whether they are only to be checked
 *   2    one answer for all features
 */
import { updateFeatures as api } from '../../wire/messages/57-update-features.ts'
import { DONE, type Outcome, refused, repeated } from '../admin-errors.ts'
import { type Feature, featuresOf } from '../features.ts'
import { type Handler, handler } from '../handler.ts'

interface Update {
  readonly feature: string
  readonly maxVersionLevel: number
}

/** `handlers`: all there are, this one among them. */
export function updateFeaturesOf(handlers: () => readonly Handler[]): Handler {
  return handler(api, ({ featureUpdates }) => {
    const outcome = outcomeOfAll(featureUpdates, featuresOf(handlers()))
    const results = outcome === DONE ? featureUpdates.map(({ feature }) => ({ feature, ...DONE })) : []
    return { throttleTimeMs: 0, ...outcome, results }
  })
}

/** All of them or none. */
function outcomeOfAll(updates: readonly Update[], features: readonly Feature[]): Outcome {
  const [twice] = repeated(updates.map(({ feature }) => feature))
  if (twice !== undefined) return refused('INVALID_REQUEST', `${twice} is there twice`)
  for (const { feature, maxVersionLevel } of updates) {
    const known = features.find(({ name }) => name === feature)
    if (known === undefined) return refused('INVALID_UPDATE_VERSION', `there is no feature "${feature}"`)
    if (known.maxVersion !== maxVersionLevel) {
      return refused(
        'INVALID_UPDATE_VERSION',
        `${feature} is at ${known.maxVersion}, as this version has it, and stays there`,
      )
    }
  }
  return DONE
}
