/** All handlers, as far as a release of Apache Kafka has them: what came later is neither told nor answered. */
import type { Handler } from './handler.ts'
import { apiVersionsOf } from './handlers/18-api-versions.ts'
import { updateFeaturesOf } from './handlers/57-update-features.ts'
import { HANDLERS } from './handlers.ts'
import { maxVersionsOf, type Release } from './releases.ts'

export function handlersAs(release: Release): readonly Handler[] {
  const maxima = maxVersionsOf(release)
  // These two tell what the others can do.
  const telling = [apiVersionsOf(() => handlers), updateFeaturesOf(() => handlers)]
  const handlers: readonly Handler[] = HANDLERS.flatMap((each): Handler[] => {
    const [min, max] = each.advertised
    const last = Math.min(max, maxima.get(each.api.key) ?? -1)
    // Some that are so old are not spoken here in any version.
    if (last < each.api.min) return []
    const handler = telling.find(({ api }) => api.key === each.api.key) ?? each
    return [{ ...handler, advertised: [min, last] }]
  })
  return handlers
}

/** Of a release, or all there are. */
export function handlersOf(release: Release | undefined): readonly Handler[] {
  return release === undefined ? HANDLERS : handlersAs(release)
}
