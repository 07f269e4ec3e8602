/** ApiVersions: what it says in each version, of which handlers, and to whom. */
import { describe, expect, it } from 'vitest'
import type { Call, Handler } from '../../../src/server/handler.ts'
import { handler } from '../../../src/server/handler.ts'
import { apiVersionsOf } from '../../../src/server/handlers/18-api-versions.ts'
import { HANDLERS } from '../../../src/server/handlers.ts'
import type { ResponseOf } from '../../../src/wire/api.ts'
import { APIS } from '../../../src/wire/apis.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { apiVersions } from '../../../src/wire/messages/18-api-versions.ts'
import { KafkaWorld } from '../../support/kafka.ts'

type Response = ResponseOf<typeof apiVersions>

const SOFTWARE = { clientSoftwareName: 'apache-kafka-java', clientSoftwareVersion: '4.0.0' }

/** Handlers of these APIs, which are never called. */
const handlersOf = (...keys: number[]): Handler[] =>
  APIS.filter(({ key }) => keys.includes(key)).map((api) => handler(api, () => null))

const answerOf = (others: readonly Handler[], version: number, request: object = SOFTWARE): Response => {
  const versions = apiVersionsOf(() => [...others, versions])
  return versions.answer(request, { version } as Call, {} as never) as Response
}

describe('ApiVersions', () => {
  it.each([0, 1, 2, 3, 4])('names what is handled, and nothing else: version %i', async (version) => {
    const kafka = new KafkaWorld()
    await using _ = kafka.broker
    const { errorCode, apiKeys, throttleTimeMs } = await kafka.send(apiVersions, version, SOFTWARE)
    expect([errorCode, throttleTimeMs]).toEqual([0, 0])
    expect(apiKeys.map(({ apiKey }) => apiKey)).toEqual(HANDLERS.map(({ api }) => api.key))
  })

  it('says of an API what is advertised, where that is more than what is spoken', () => {
    const [produce] = handlersOf(0) as [Handler]
    const { apiKeys } = answerOf([{ ...produce, advertised: [0, 13] }], 0)
    expect(apiKeys).toContainEqual({ apiKey: 0, minVersion: 0, maxVersion: 13 })
  })

  it('lists keys in order, each once', () => {
    const keys = HANDLERS.map(({ api }) => api.key)
    expect(keys).toEqual([...new Set(keys)].sort((a, b) => a - b))
  })
})

describe('features', () => {
  const transactions = handlersOf(22, 24, 25, 26, 28)
  const groups = handlersOf(68, 69)

  it('are supported from version 4 on, and before it those alone that begin above 0', () => {
    const names = (version: number): string[] =>
      answerOf([...transactions, ...groups], version).supportedFeatures.map(({ name }) => name)
    expect(names(3)).toEqual(['metadata.version'])
    expect(names(4)).toEqual(['metadata.version', 'transaction.version', 'group.version'])
  })

  it('are on at the level that they have, in an epoch that clients take', () => {
    const { finalizedFeatures, finalizedFeaturesEpoch } = answerOf([...transactions, ...groups], 3)
    expect(finalizedFeaturesEpoch).toBeGreaterThanOrEqual(0)
    expect(finalizedFeatures).toEqual([
      { name: 'metadata.version', maxVersionLevel: 25, minVersionLevel: 25 },
      { name: 'transaction.version', maxVersionLevel: 2, minVersionLevel: 2 },
      { name: 'group.version', maxVersionLevel: 1, minVersionLevel: 1 },
    ])
  })

  it.each([
    ['group.version', handlersOf(68)],
    ['group.version', handlersOf(69)],
    ['transaction.version', handlersOf(22, 24, 25, 28)],
  ])('leave out %s where an API of it is not handled', (name, handlers) => {
    const { supportedFeatures, finalizedFeatures } = answerOf(handlers, 4)
    const names = [...supportedFeatures, ...finalizedFeatures].map((feature) => feature.name)
    expect(names).not.toContain(name)
    expect(names).toContain('metadata.version')
  })
})

describe('what a client says it is', () => {
  it.each([
    ['a name', 'librdkafka', '2.8.0'],
    ['one letter', 'a', '1'],
    ['points and lines', 'x.y-z', '1.0-rc.1'],
  ])('may be %s', (_, clientSoftwareName, clientSoftwareVersion) => {
    expect(answerOf([], 3, { clientSoftwareName, clientSoftwareVersion }).errorCode).toBe(0)
  })

  it.each([
    ['', '1'],
    ['a', ''],
    ['-a', '1'],
    ['a.', '1'],
    ['a b', '1'],
    ['a', '1_0'],
    ['ä', '1'],
    ['a\n', '1'],
  ])('is no name: %j, %j', (clientSoftwareName, clientSoftwareVersion) => {
    const request = { clientSoftwareName, clientSoftwareVersion }
    const { errorCode, apiKeys } = answerOf([], 3, request)
    expect([errorCode, apiKeys]).toEqual([KAFKA_ERRORS.INVALID_REQUEST, []])
    expect(answerOf([], 2, request).errorCode).toBe(0)
  })
})
