/** How a client shows who it is, over a connection: both APIs, and tokens without a header. */
import { describe, expect, it } from 'vitest'
import { authenticate, type SaslMechanism } from '../../src/client/sasl.ts'
import { saslHandshake as handshakeHandler } from '../../src/server/handlers/17-sasl-handshake.ts'
import { saslAuthenticate as authenticateHandler } from '../../src/server/handlers/36-sasl-authenticate.ts'
import { HANDLERS } from '../../src/server/handlers.ts'
import { FAILED_AUTHENTICATION_DELAY_MS } from '../../src/server/refusal.ts'
import { Authenticator } from '../../src/server/sasl.ts'
import { type SaslOptions, saslSettings } from '../../src/server/sasl-options.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { saslHandshake } from '../../src/wire/messages/17-sasl-handshake.ts'
import { saslAuthenticate } from '../../src/wire/messages/36-sasl-authenticate.ts'
import { echo, echoOf, Kit, type KitOptions } from './kit.ts'
import { finalOf, handshake, requesterOf, type ScramName, token } from './sasl-client.ts'
import { requestOf, type WireClient } from './wire-client.ts'

const { ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM } = KAFKA_ERRORS
const USERS = { alice: 'secret', 'b,=ø': 'pässword' }
const BARE = 'n=alice,r=abc'

async function open(sasl: Partial<SaslOptions> = {}, options: KitOptions = {}): Promise<Kit> {
  const users = await Authenticator.open(saslSettings('sasl', { users: USERS, ...sasl }, true))
  return Kit.open({
    authenticates: true,
    users,
    handlers: [handshakeHandler, authenticateHandler],
    ...options,
  })
}

/** The answer to what is asked, whose answer has to wait. */
async function late<T>(kit: Kit, answer: Promise<T>): Promise<T> {
  let came = false
  void answer.finally(() => {
    came = true
  })
  const refused = (): boolean => kit.logged.some(({ message }) => message === 'a client is not let in')
  await kit.until(refused)
  await kit.pass()
  await kit.clock.advance(FAILED_AUTHENTICATION_DELAY_MS - 1)
  await kit.pass()
  expect(came).toBe(false)
  await kit.clock.advance(1)
  return await answer
}

async function believed(kit: Kit, client: WireClient, principal: string): Promise<void> {
  client.send(echoOf('a'))
  expect((await client.response(echo, 1)).body.name).toBe('a')
  expect(kit.started.at(-1)?.call.client.principal).toBe(principal)
}

describe('a client that knows its password', () => {
  it.each<[SaslMechanism, keyof typeof USERS]>([
    ['PLAIN', 'alice'],
    ['SCRAM-SHA-256', 'alice'],
    ['SCRAM-SHA-512', 'alice'],
    ['PLAIN', 'b,=ø'],
    ['SCRAM-SHA-256', 'b,=ø'],
  ])('is let in by %s: %s', async (mechanism, username) => {
    await using kit = await open()
    const client = await kit.connect()
    await authenticate(requesterOf(client), { mechanism, username, password: USERS[username] })
    await believed(kit, client, `User:${username}`)
  })

  it('has no deadline any more', async () => {
    await using kit = await open()
    const client = await kit.connect()
    const credentials = { mechanism: 'SCRAM-SHA-256', username: 'alice', password: 'secret' } as const
    await authenticate(requesterOf(client), credentials)
    await kit.clock.advance(10_000)
    await believed(kit, client, 'User:alice')
  })

  it.each([0, 1, 2])('is told in version %i that it is believed for good', async (version) => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN')
    const authBytes = Buffer.from('\0alice\0secret')
    expect(await client.ask(saslAuthenticate, version, { authBytes })).toMatchObject({
      errorCode: 0,
      errorMessage: null,
      sessionLifetimeMs: 0,
    })
  })

  it('may be known by what is stored of its password', async () => {
    const SCRAM = {
      salt: 'W22ZaJ0SNY7soEsUEjb6gQ==',
      iterations: 4_096,
      storedKey: 'WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=',
      serverKey: 'wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=',
    }
    await using kit = await open({ users: { user: { 'SCRAM-SHA-256': SCRAM } } })
    const client = await kit.connect()
    const credentials = { mechanism: 'SCRAM-SHA-256', username: 'user', password: 'pencil' } as const
    await authenticate(requesterOf(client), credentials)
    await believed(kit, client, 'User:user')
    // There is no password to compare with.
    const other = await kit.connect()
    await handshake(other, 'PLAIN')
    expect((await late(kit, token(other, '\0user\0pencil'))).errorCode).toBe(SASL_AUTHENTICATION_FAILED)
  })
})

describe('a client that is not believed', () => {
  it.each([
    ['another password', '\0alice\0secrets', 'user and password do not match'],
    ['nobody', '\0mallory\0secret', 'user and password do not match'],
    ['no password', '\0alice\0', 'the message is none of PLAIN'],
    ['no user', '\0\0secret', 'the message is none of PLAIN'],
    ['half a message', 'alice', 'the message is none of PLAIN'],
    ['more than a message', '\0alice\0secret\0', 'the message is none of PLAIN'],
    ['who acts for another', 'root\0alice\0secret', 'nobody can act for another user'],
    ['no UTF-8', Uint8Array.of(0xff), 'a message is no UTF-8'],
  ])('by PLAIN: %s', async (_, message, reason) => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN')
    const { errorCode, errorMessage } = await late(kit, token(client, message))
    expect(errorCode).toBe(SASL_AUTHENTICATION_FAILED)
    expect(errorMessage).toBe(`authentication failed: ${reason}`)
    await client.closed
    expect(kit.reasons('warn')).toEqual([reason])
  })

  it.each<ScramName>(['SCRAM-SHA-256', 'SCRAM-SHA-512'])('by %s', async (mechanism) => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, mechanism)
    const first = await token(client, `n,,${BARE}`)
    const { message } = finalOf(mechanism, 'guess', BARE, first.text)
    const { errorCode, errorMessage } = await late(kit, token(client, message))
    expect(errorCode).toBe(SASL_AUTHENTICATION_FAILED)
    expect(errorMessage).toBe('authentication failed: user and password do not match')
    await client.closed
    expect(kit.logged.at(-1)?.details).toMatchObject({ mechanism, user: 'alice', client: '127.0.0.1' })
  })

  it('learns nothing of who there is: it gets a salt, the same every time', async () => {
    await using kit = await open()
    const firsts: string[] = []
    for (let i = 0; i < 2; i++) {
      const client = await kit.connect()
      await handshake(client, 'SCRAM-SHA-256')
      firsts.push((await token(client, 'n,,n=mallory,r=abc')).text)
    }
    const [one, two] = firsts.map((first) => first.replace(/^r=[^,]*,/, ''))
    expect(one).toMatch(/^s=[\w+/]{22}==,i=4096$/)
    expect(two).toBe(one)
  })

  it('fills the log with no more than a hundred characters of its name', async () => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN')
    await late(kit, token(client, `\0${'x'.repeat(10_000)}\0y`))
    expect(kit.logged.at(-1)?.details).toMatchObject({ user: 'x'.repeat(100) })
  })

  it('may go while it waits for that', async () => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN')
    client.send(requestOf(saslAuthenticate, 0, { authBytes: Buffer.from('\0a\0b') }))
    await kit.until(() => kit.logged.length > 0)
    client.close()
    await kit.connections[0]?.closed
  })

  it('is not let in by what it sends behind, nor heard', async () => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN')
    client.send(
      requestOf(saslAuthenticate, 0, { authBytes: Buffer.from('\0alice\0guess') }),
      requestOf(saslAuthenticate, 0, { authBytes: Buffer.from('\0alice\0secret') }),
      echoOf('a'),
    )
    const answer = await late(kit, client.response(saslAuthenticate, 0))
    expect(answer.body.errorCode).toBe(SASL_AUTHENTICATION_FAILED)
    await client.closed
    expect(client.unread).toBe(0)
    expect(kit.started).toEqual([])
  })
})

describe('what is out of order', () => {
  it('is a token before a handshake', async () => {
    await using kit = await open()
    const client = await kit.connect()
    expect((await late(kit, token(client, '\0alice\0secret'))).errorCode).toBe(ILLEGAL_SASL_STATE)
    await client.closed
  })

  it('is a second handshake', async () => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN')
    expect(await late(kit, handshake(client, 'PLAIN'))).toBe(ILLEGAL_SASL_STATE)
    await client.closed
  })

  it('is both, once a client is believed: it stays', async () => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN')
    await token(client, '\0alice\0secret')
    expect(await handshake(client, 'PLAIN')).toBe(ILLEGAL_SASL_STATE)
    expect((await token(client, '\0alice\0secret')).errorCode).toBe(ILLEGAL_SASL_STATE)
    await believed(kit, client, 'User:alice')
  })

  it('is both where nobody has to show anything', async () => {
    await using kit = await Kit.open({ handlers: [handshakeHandler, authenticateHandler] })
    const client = await kit.connect()
    expect(await handshake(client, 'PLAIN')).toBe(ILLEGAL_SASL_STATE)
    expect((await token(client, '\0alice\0secret')).errorCode).toBe(ILLEGAL_SASL_STATE)
    await believed(kit, client, 'User:ANONYMOUS')
  })
})

describe('a mechanism that is not offered', () => {
  it('is answered with those that are', async () => {
    await using kit = await open({ mechanisms: ['SCRAM-SHA-512'] })
    const client = await kit.connect()
    const answer = await late(kit, client.ask(saslHandshake, 1, { mechanism: 'PLAIN' }))
    expect(answer).toEqual({ errorCode: UNSUPPORTED_SASL_MECHANISM, mechanisms: ['SCRAM-SHA-512'] })
    await client.closed
  })
})

describe('after a handshake of version 0', () => {
  const raw = (text: string): Buffer => {
    const frame = Buffer.alloc(4 + Buffer.byteLength(text))
    frame.writeInt32BE(frame.length - 4)
    frame.write(text, 4)
    return frame
  }

  it('tokens have nothing but their length, until the client is believed', async () => {
    await using kit = await open()
    const client = await kit.connect()
    expect(await handshake(client, 'SCRAM-SHA-256', 0)).toBe(0)
    client.send(raw(`n,,${BARE}`))
    const first = String(await client.frame())
    const { message, answer } = finalOf('SCRAM-SHA-256', 'secret', BARE, first)
    client.send(raw(message))
    expect(String(await client.frame())).toBe(answer)
    await believed(kit, client, 'User:alice')
  })

  it('a client that is not believed is told nothing', async () => {
    await using kit = await open()
    const client = await kit.connect()
    await handshake(client, 'PLAIN', 0)
    client.send(raw('\0alice\0guess'))
    await late(kit, client.closed)
    expect(client.unread).toBe(0)
    expect(kit.reasons('warn')).toEqual(['user and password do not match'])
    expect(kit.reasons('error')).toEqual([])
  })
})

describe('before a client has shown who it is', () => {
  it('every API but the three that it needs is refused, in every version', async () => {
    await using kit = await open({}, { handlers: [...HANDLERS] })
    let refused = 0
    for (const { api, advertised } of HANDLERS) {
      if ([17, 18, 36].includes(api.key)) continue
      for (let version = advertised[0]; version <= advertised[1]; version++) {
        const client = await kit.connect()
        const frame = Buffer.alloc(64)
        frame.writeInt32BE(60)
        frame.writeInt16BE(api.key, 4)
        frame.writeInt16BE(version, 6)
        client.send(frame)
        await client.closed
        expect(client.unread).toBe(0)
        refused++
      }
    }
    expect(refused).toBeGreaterThan(100)
    expect(new Set(kit.reasons('info'))).toEqual(new Set(['the client has not authenticated']))
    expect(kit.reasons('info')).toHaveLength(refused)
  })
})
