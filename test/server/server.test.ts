/** A served broker as its clients see it: over real sockets, at ports that the system chose. */
import { describe, expect, it } from 'vitest'
import { createBroker } from '../../src/memory.ts'
import { HANDLERS } from '../../src/server/handlers.ts'
import { serve } from '../../src/server/server.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { WireClient } from './wire-client.ts'

const SOFTWARE = { clientSoftwareName: 'test', clientSoftwareVersion: '1.0' }

describe('serve', () => {
  it.each([0, 1, 2, 3, 4])('answers ApiVersions, version %i, with what is handled', async (version) => {
    await using broker = createBroker()
    await using server = await serve(broker, { port: 0 })
    using client = await WireClient.connect(server.addresses[0] as (typeof server.addresses)[0])
    const { errorCode, apiKeys } = await client.ask(apiVersions, version, SOFTWARE)
    expect(errorCode).toBe(0)
    expect(apiKeys).toEqual(
      HANDLERS.map(({ api, advertised: [minVersion, maxVersion] }) => {
        return { apiKey: api.key, minVersion, maxVersion }
      }),
    )
  })
})
