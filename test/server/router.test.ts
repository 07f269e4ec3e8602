/** What of a request is answered, and what closes the connection. */
import { describe, expect, it } from 'vitest'
import { handler } from '../../src/server/handler.ts'
import { apiVersionsOf } from '../../src/server/handlers/18-api-versions.ts'
import { writeRequest } from '../../src/wire/api.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { echo, echoOf, Kit } from './kit.ts'
import { requestOf } from './wire-client.ts'

describe('a version that is not spoken', () => {
  it.each([5, 99, -1])('of ApiVersions gets version 0, an error and one entry: %i', async (version) => {
    const versions = apiVersionsOf(() => [versions])
    await using kit = await Kit.open({ handlers: [versions] })
    const client = await kit.connect()
    const request = requestOf(apiVersions, 0, {}, 17)
    request.writeInt16BE(version, 6)
    // What follows the header is in a form that nobody here knows.
    request.writeInt32BE(request.length)
    client.send(request, Uint8Array.of(1, 2, 3, 4))
    const { correlationId, body } = await client.response(apiVersions, 0)
    expect(correlationId).toBe(17)
    expect(body.errorCode).toBe(KAFKA_ERRORS.UNSUPPORTED_VERSION)
    expect(body.apiKeys).toEqual([{ apiKey: 18, minVersion: 0, maxVersion: 4 }])
  })

  it.each([0, 4])('of anything else closes the connection: %i', async (version) => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    const request = echoOf('a')
    request.writeInt16BE(version, 6)
    client.send(request)
    await client.closed
    expect(kit.started).toEqual([])
    expect(kit.reasons('warn')).toEqual(['versions 1 to 3 are spoken'])
  })

  it('reaches its handler if it is advertised, which says so', async () => {
    const said: number[] = []
    const modest = handler(
      echo,
      ({ name }, { version }) => {
        said.push(version)
        return { name, data: new Uint8Array(0) }
      },
      [0, 3],
    )
    await using kit = await Kit.open()
    const router = kit.routerOf([modest])
    const pieces = writeRequest(echo, 0, { correlationId: 1, clientId: null }, {
      name: 'a',
      data: new Uint8Array(0),
      sizeBytes: 0,
    } as never)
    const answer = await router.route(Buffer.concat(pieces).subarray(4), kit.session())
    expect(answer).not.toBeNull()
    expect(said).toEqual([0])
  })
})

describe('an API that is not there', () => {
  it('closes the connection', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    const request = echoOf('a')
    request.writeInt16BE(4_242, 4)
    client.send(request)
    await client.closed
    expect(kit.reasons('warn')).toEqual(['there is no API with key 4242'])
    const about = kit.logged.find(({ level }) => level === 'warn')?.details
    expect(about).toMatchObject({ request: 'API 4242, version 1, of "test"' })
  })
})

describe('what a client calls itself', () => {
  it('may be nothing', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    const body = { name: 'a', data: new Uint8Array(0), sizeBytes: 0 }
    client.send(requestOf(echo, 1, body, 1, null))
    await client.frame()
    expect(kit.started[0]?.call.clientId).toBe('')
  })

  it('is in the log, or that it is nothing', async () => {
    await using kit = await Kit.open({ answer: () => Promise.reject(new Error('broken')) })
    const client = await kit.connect()
    const body = { name: 'a', data: new Uint8Array(0), sizeBytes: 0 }
    client.send(requestOf(echo, 1, body, 1, null))
    await client.closed
    const about = kit.logged.find(({ level }) => level === 'error')?.details
    expect(about).toMatchObject({ request: 'Echo, version 1, of a client without an id' })
  })
})
