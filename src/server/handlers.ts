/** Every handler there is, by the key of its API. ApiVersions says what is in here, so the two cannot differ. */
import type { Handler } from './handler.ts'
import { apiVersionsOf } from './handlers/18-api-versions.ts'
import { initProducerId } from './handlers/22-init-producer-id.ts'

export const HANDLERS: readonly Handler[] = [apiVersionsOf(() => HANDLERS), initProducerId]
