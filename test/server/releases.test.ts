/** A server that says it is an older Kafka. */
import { describe, expect, it } from 'vitest'
import type { Logger } from '../../src/model/views.ts'
import { HANDLERS } from '../../src/server/handlers.ts'
import { handlersAs } from '../../src/server/handlers-as.ts'
import { maxVersionsOf, RELEASES } from '../../src/server/releases.ts'
import { startTestServer, type TestServer } from '../../src/testing/test-server.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { requestOf, WireClient } from './wire-client.ts'

const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const software = { clientSoftwareName: 'test', clientSoftwareVersion: '1' }

function connectTo({ server }: TestServer): Promise<WireClient> {
  const { host, port } = server.addresses[0] as { host: string; port: number }
  return WireClient.connect({ host, port })
}

describe('a release', () => {
  it.each(RELEASES)(
    '%s has no API in a version that we do not speak, and none that came later',
    (release) => {
      const maxima = maxVersionsOf(release)
      const handlers = handlersAs(release)
      expect(handlers.length).toBeGreaterThan(20)
      for (const { api, advertised } of handlers) {
        expect(advertised[1]).toBeLessThanOrEqual(api.max)
        expect(advertised[1]).toBeLessThanOrEqual(maxima.get(api.key) as number)
        expect(advertised[1]).toBeGreaterThanOrEqual(api.min)
      }
    },
  )

  it('has everything that the one before it has, and at least its versions', () => {
    for (const [i, release] of RELEASES.slice(1).entries()) {
      const before = maxVersionsOf(RELEASES[i] as (typeof RELEASES)[number])
      const maxima = maxVersionsOf(release)
      for (const [key, version] of before) expect(maxima.get(key)).toBeGreaterThanOrEqual(version)
    }
  })

  it('is answered for as it was: no flexible versions in 2.0, no topic ids in 2.8', () => {
    const maxOf = (release: (typeof RELEASES)[number], key: number) =>
      handlersAs(release).find(({ api }) => api.key === key)?.advertised[1]
    expect([maxOf('0.11', 0), maxOf('2.0', 0), maxOf('2.8', 0)]).toEqual([3, 6, 9])
    expect([maxOf('2.8', 1), maxOf('2.8', 3)]).toEqual([12, 11])
    expect([maxOf('0.11', 36), maxOf('0.11', 17), maxOf('1.0', 36)]).toEqual([undefined, 0, 0])
  })
})

describe('a server', () => {
  it('says what its release can do, and speaks no more', async () => {
    await using kafka = await startTestServer({ as: '2.8', broker: { logger: SILENT } })
    using client = await connectTo(kafka)
    const { errorCode, apiKeys, supportedFeatures } = await client.ask(apiVersions, 3, software)
    expect(errorCode).toBe(0)
    expect(apiKeys.find(({ apiKey }) => apiKey === metadata.key)).toMatchObject({
      minVersion: 0,
      maxVersion: 11,
    })
    expect(apiKeys.length).toBe(handlersAs('2.8').length)
    expect(supportedFeatures).toEqual([])
    client.send(requestOf(metadata, 12, { topics: [] }))
    await client.closed
  })

  it('tells who asks for versions in a newer one which are known', async () => {
    await using kafka = await startTestServer({ as: '2.0' })
    using client = await connectTo(kafka)
    client.send(requestOf(apiVersions, 3, software))
    const { body } = await client.response(apiVersions, 0)
    expect(body).toMatchObject({
      errorCode: KAFKA_ERRORS.UNSUPPORTED_VERSION,
      apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 2 }],
    })
  })

  it('of the last release has its features, and that of one before them not', async () => {
    const featuresOf = async (as: '3.9' | '4.1'): Promise<string[]> => {
      await using kafka = await startTestServer({ as })
      using client = await connectTo(kafka)
      const { supportedFeatures } = await client.ask(apiVersions, 4, software)
      return supportedFeatures.map(({ name }) => name)
    }
    expect(await featuresOf('3.9')).toEqual(['metadata.version'])
    expect(await featuresOf('4.1')).toContain('transaction.version')
  })

  it('is none of a release that nobody knows', async () => {
    await expect(startTestServer({ as: '9.9' as never })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'as is one of 0.11, 1.0, 2.0, 2.8, 3.9, 4.1; got 9.9',
    })
  })

  it('speaks everything where nothing is said', () => {
    expect(HANDLERS.length).toBeGreaterThanOrEqual(handlersAs('4.1').length)
  })
})
