/** What a client may do before it has shown who it is, where it has to. */
import { describe, expect, it } from 'vitest'
import { type Answer, handler } from '../../src/server/handler.ts'
import { apiVersionsOf } from '../../src/server/handlers/18-api-versions.ts'
import { AUTHENTICATION_DEADLINE_MS, MAX_UNAUTHENTICATED_BYTES } from '../../src/server/limits.ts'
import type { Session } from '../../src/server/session.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { saslAuthenticate } from '../../src/wire/messages/36-sasl-authenticate.ts'
import { echo, echoOf, Kit } from './kit.ts'
import { requestOf } from './wire-client.ts'

const NOTHING = new Uint8Array(0)
const OK = { errorCode: 0, errorMessage: null, authBytes: NOTHING }

/** Believes everybody, in a later turn. */
const believing = handler(saslAuthenticate, async ({ authBytes }, call) => {
  await new Promise((resolve) => setImmediate(resolve))
  const session = call.client as Session
  session.authenticate(`User:${Buffer.from(authBytes).toString()}`)
  return OK
})
const versions = apiVersionsOf(() => [versions, believing])
const proof = (name: string): Buffer => requestOf(saslAuthenticate, 0, { authBytes: Buffer.from(name) }, 2)

const open = (): Promise<Kit> => Kit.open({ authenticates: true, handlers: [versions, believing] })

describe('a client that has not shown who it is', () => {
  it('may ask for versions, and for nothing but how to authenticate', async () => {
    await using kit = await open()
    const client = await kit.connect()
    const { errorCode } = await client.ask(apiVersions, 0, {})
    expect(errorCode).toBe(0)
    client.send(echoOf('a'))
    await client.closed
    expect(kit.started).toEqual([])
    expect(kit.reasons('info')).toEqual(['the client has not authenticated'])
  })

  it('sends requests of at most 64 KiB', async () => {
    await using kit = await open()
    const client = await kit.connect()
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(MAX_UNAUTHENTICATED_BYTES + 1)
    client.send(bytes)
    await client.closed
    expect(kit.reasons('warn')).toEqual([
      'a request of 65537 bytes; at most 65536 are taken (before a client has shown who it is)',
    ])
  })

  it('is closed when it takes too long', async () => {
    await using kit = await open()
    const client = await kit.connect()
    await client.ask(apiVersions, 0, {})
    await kit.clock.advance(AUTHENTICATION_DEADLINE_MS)
    await client.closed
    expect(kit.reasons('warn')).toEqual(['it did not authenticate in time'])
  })
})

describe('a client that has shown who it is', () => {
  it('is taken at its word from the next request on, also if it did not wait', async () => {
    await using kit = await open()
    const client = await kit.connect()
    client.send(proof('alice'), echoOf('a', { data: new Uint8Array(100_000) }))
    await client.response(saslAuthenticate, 0)
    expect((await client.response(echo, 1)).body.name).toBe('a')
    expect(kit.started[0]?.call.client.principal).toBe('User:alice')
  })

  it('has no deadline any more', async () => {
    await using kit = await open()
    const client = await kit.connect()
    client.send(proof('alice'))
    await client.response(saslAuthenticate, 0)
    await kit.clock.advance(AUTHENTICATION_DEADLINE_MS)
    client.send(echoOf('a'))
    expect((await client.response(echo, 1)).body.name).toBe('a')
  })
})

describe('interceptors', () => {
  it('see every request in their order, and change, hold or refuse it', async () => {
    const seen: string[] = []
    const answers: Record<string, (next: () => Answer<unknown>) => Answer<unknown>> = {
      passed: (next) => next(),
      instead: () => ({ name: 'other', data: NOTHING }),
      held: async (next) => {
        await new Promise((resolve) => setImmediate(resolve))
        return next()
      },
      silent: () => null,
    }
    await using kit = await Kit.open({
      interceptors: [
        ({ handler: { api }, body }, next) => {
          seen.push(`first ${api.name} ${(body as { name: string }).name}`)
          return next()
        },
        ({ body, session }, next) => {
          const { name } = body as { name: string }
          seen.push(`second, of ${session.principal}`)
          return answers[name]?.(next) ?? null
        },
      ],
    })
    const client = await kit.connect()
    client.send(...['passed', 'instead', 'silent', 'held'].map((name) => echoOf(name)))
    const names: string[] = []
    for (let i = 0; i < 3; i++) names.push((await client.response(echo, 1)).body.name)
    expect(names).toEqual(['passed', 'other', 'held'])
    expect(kit.names).toEqual(['passed', 'held'])
    expect(seen.slice(0, 4)).toEqual([
      'first Echo passed',
      'second, of User:ANONYMOUS',
      'first Echo instead',
      'second, of User:ANONYMOUS',
    ])
  })
})
