/** Listeners by TLS: who gets in, and what the log says of those who do not. */
import { readFileSync } from 'node:fs'
import { connect as connectPlain, type Socket } from 'node:net'
import { join } from 'node:path'
import { type ConnectionOptions, connect } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { authenticate } from '../../src/client/sasl.ts'
import { createBroker } from '../../src/memory.ts'
import type { Logger } from '../../src/model/views.ts'
import { type KafkaServer, serve } from '../../src/server/server.ts'
import type { ServeOptions } from '../../src/server/server-options.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { codeThrown } from '../support/world.ts'
import { requesterOf } from './sasl-client.ts'
import { requestOf, WireClient } from './wire-client.ts'

const file = (name: string): string =>
  readFileSync(join(import.meta.dirname, '..', 'fixtures', 'tls', name), 'utf8')
const tls = { key: file('server.key'), cert: file('server.crt') }
const ca = file('ca.crt')

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface Served {
  readonly server: KafkaServer
  readonly warnings: string[]
  readonly gone: string[]
}

async function served(options: ServeOptions): Promise<Served> {
  const warnings: string[] = []
  const gone: string[] = []
  const warn = (details: object, message: string): void =>
    void warnings.push((details as { reason?: string }).reason ?? message)
  const debug = (details: object): void => void gone.push(String((details as { reason: string }).reason))
  const logger: Logger = { debug, info() {}, warn, error() {} }
  const broker = createBroker({ logger })
  const server = await serve(broker, { port: 0, ...options })
  ends.push(
    async () => void (await broker.close()),
    () => server.close({ drainMs: 0 }),
  )
  return { server, warnings, gone }
}

const portOf = ({ server }: Served): number => server.addresses[0]?.port as number

/** Resolves when a byte may be sent; rejects with why not. */
function secure(to: Served, options: ConnectionOptions = {}): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: portOf(to), ca, ...options } as ConnectionOptions)
    socket.once('secureConnect', () => resolve(socket))
    socket.once('error', reject)
  })
}

async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setImmediate(resolve))
}

async function versionsOf(socket: Socket): Promise<number> {
  const client = new WireClient(socket)
  const { errorCode } = await client.ask(apiVersions, 0, {})
  client.close()
  return errorCode
}

describe('a listener with a certificate', () => {
  it('speaks with clients that trust its authority', async () => {
    const to = await served({ tls })
    expect(await versionsOf(await secure(to))).toBe(0)
    expect(to.warnings).toEqual([])
  })

  it('takes the first request with the handshake, and large ones', async () => {
    const to = await served({ tls })
    const client = new WireClient(await secure(to))
    client.send(...Array.from({ length: 100 }, (_, i) => requestOf(apiVersions, 3, software, i)))
    for (let i = 0; i < 100; i++) expect((await client.response(apiVersions, 3)).correlationId).toBe(i)
    client.close()
  })

  it('is not spoken to by clients that trust another one', async () => {
    const to = await served({ tls })
    await expect(secure(to, { ca: file('stranger.crt') })).rejects.toThrow(/unable to verify|self.signed/)
    await until(() => to.gone.length > 0)
  })

  it('says so where a client comes in plaintext', async () => {
    const to = await served({ tls })
    const client = await WireClient.connect({ host: '127.0.0.1', port: portOf(to) })
    client.send(requestOf(apiVersions, 0, {}))
    await client.closed
    await until(() => to.warnings.length > 0)
    expect(to.warnings).toEqual([
      'this looks like a plaintext client on a TLS port: the listener has TLS on, the client has not',
    ])
  })

  it('says so once a minute where a client comes again and again, with how often', async () => {
    const clock = new ManualClock()
    const told: object[] = []
    const logger: Logger = { debug() {}, info() {}, warn: (details) => void told.push(details), error() {} }
    const broker = createBroker({ logger, clock })
    const server = await serve(broker, { port: 0, tls })
    ends.push(
      async () => void (await broker.close()),
      () => server.close({ drainMs: 0 }),
    )
    const port = server.addresses[0]?.port as number
    const comeInPlaintext = async (): Promise<void> => {
      const client = await WireClient.connect({ host: '127.0.0.1', port })
      client.send(requestOf(apiVersions, 0, {}))
      await client.closed
    }
    for (let i = 0; i < 4; i++) await comeInPlaintext()
    expect(told).toHaveLength(1)
    expect(told[0]).not.toHaveProperty('leftOut')
    await clock.advance(60_000)
    for (let i = 0; i < 4; i++) await comeInPlaintext()
    expect(told).toHaveLength(2)
    expect(told[1]).toMatchObject({ client: '127.0.0.1', leftOut: 3 })
  })

  it('says so where a client comes by HTTP', async () => {
    const to = await served({ tls })
    const client = await WireClient.connect({ host: '127.0.0.1', port: portOf(to) })
    client.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    await client.closed
    await until(() => to.warnings.length > 0)
    expect(to.warnings[0]).toMatch(/plaintext client on a TLS port/)
  })

  it('closes while handshakes are under way, and counts them', async () => {
    const to = await served({ tls, maxConnections: 1 })
    const idle = connectPlain({ host: '127.0.0.1', port: portOf(to) })
    await new Promise<void>((resolve) => idle.once('connect', () => resolve()))
    const second = connectPlain({ host: '127.0.0.1', port: portOf(to) })
    second.on('error', () => {})
    await new Promise<void>((resolve) => second.once('close', () => resolve()))
    expect(to.warnings).toEqual(['a connection is refused: there are 1 connections already (maxConnections)'])
    const closed = new Promise<void>((resolve) => idle.once('close', () => resolve()))
    idle.on('error', () => {})
    await to.server.close({ drainMs: 0 })
    await closed
  })
})

const software = { clientSoftwareName: 'test', clientSoftwareVersion: '1' }

describe('a listener without one', () => {
  it('says so where a client comes by TLS', async () => {
    const to = await served({})
    await expect(secure(to)).rejects.toThrow()
    expect(to.warnings).toEqual([
      'this looks like a TLS handshake on a plaintext port: the client has TLS on, this listener has not',
    ])
  })
})

describe('a listener that asks for certificates', () => {
  const mutual = { ...tls, ca, requestCert: true }

  it('speaks with clients that have one of its authority', async () => {
    const to = await served({ tls: mutual })
    const socket = await secure(to, { key: file('client.key'), cert: file('client.crt') })
    expect(await versionsOf(socket)).toBe(0)
  })

  it.each([
    ['that have none', {}],
    [
      'that have one of another authority',
      { key: file('strange-client.key'), cert: file('strange-client.crt') },
    ],
  ])('closes connections of clients %s', async (_, certificate) => {
    const to = await served({ tls: mutual })
    // In TLS 1.3 the client learns it after its own part of the handshake.
    const socket = await secure(to, certificate).catch(() => undefined)
    socket?.on('error', () => {})
    await until(() => to.warnings.length > 0)
    expect(to.server.connections).toBe(0)
    expect(to.warnings).toHaveLength(1)
  })
})

describe('passwords', () => {
  const sasl = { users: { alice: 'secret' } }
  const plain = { mechanism: 'PLAIN', username: 'alice', password: 'secret' } as const

  it('may be sent as they are where there is TLS', async () => {
    const to = await served({ tls, sasl })
    const client = new WireClient(await secure(to))
    await authenticate(requesterOf(client), plain)
    client.close()
  })

  it('are not asked for as they are where there is none', async () => {
    const to = await served({ sasl })
    const client = await WireClient.connect({ host: '127.0.0.1', port: portOf(to) })
    await expect(authenticate(requesterOf(client), plain)).rejects.toThrow(
      'the broker does not offer PLAIN; it offers SCRAM-SHA-256, SCRAM-SHA-512',
    )
    client.close()
  })

  it('may be sent as they are where that is said to be meant', async () => {
    const to = await served({ sasl, insecure: true })
    const client = await WireClient.connect({ host: '127.0.0.1', port: portOf(to) })
    await authenticate(requesterOf(client), plain)
    client.close()
  })
})

describe('an address that other machines can reach', () => {
  const sasl = { users: { alice: 'secret' } }
  const broker = createBroker()
  const refused = async (options: ServeOptions): Promise<string> => {
    const error = await serve(broker, { port: 0, ...options }).catch((e: unknown) => e)
    expect(
      codeThrown(() => {
        throw error
      }),
    ).toBe('INVALID_ARGUMENT')
    return (error as Error).message
  }

  it.each<[string, ServeOptions]>([
    ["tls: { key, cert } and sasl: { users: { name: 'password' } }", { host: '0.0.0.0' }],
    ["tls: { key, cert } and sasl: { users: { name: 'password' } }", { host: '::' }],
    ["tls: { key, cert } and sasl: { users: { name: 'password' } }", { host: 'kafka.example' }],
    ['tls: { key, cert }', { host: '0.0.0.0', sasl }],
    ["sasl: { users: { name: 'password' } }", { host: '0.0.0.0', tls }],
  ])('is refused without %s', async (missing, options) => {
    expect(await refused(options)).toBe(
      `serve: ${options.host} can be reached by other machines: give ${missing}, or say insecure: true`,
    )
  })

  it('is refused as one listener of several', async () => {
    const message = await refused({
      port: undefined,
      listeners: [{ port: 0 }, { name: 'B', host: '0.0.0.0', port: 0 }],
    } as never)
    expect(message).toMatch(/^listeners\[1\]: 0\.0\.0\.0 can be reached/)
  })

  it.each<[string, ServeOptions]>([
    ['with both', { tls, sasl }],
    ['with certificates of clients', { tls: { ...tls, ca, requestCert: true } }],
    ['where it is said to be meant', { insecure: true }],
  ])('is served %s', async (_, options) => {
    const { server } = await served({ host: '0.0.0.0', ...options })
    expect(server.addresses).toHaveLength(1)
  })

  it.each(['localhost', '127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])(
    'is none of %s',
    async (host) => {
      const error = await serve(broker, { host, port: 0 }).then(
        (server) => server.close(),
        (e: unknown) => e,
      )
      expect((error as { code?: string } | undefined)?.code).not.toBe('INVALID_ARGUMENT')
    },
  )
})

describe('options that cannot be', () => {
  const users = { alice: 'secret' }
  const scram = (changes: object): object => {
    const bytes = (sizeBytes: number): string => Buffer.alloc(sizeBytes, 1).toString('base64')
    const credential = { salt: bytes(16), iterations: 4_096, storedKey: bytes(32), serverKey: bytes(32) }
    return { users: { alice: { 'SCRAM-SHA-256': { ...credential, ...changes } } } }
  }

  it.each<[string, object]>([
    ['tls without a key', { tls: { cert: tls.cert } }],
    ['tls without a certificate', { tls: { key: tls.key } }],
    ['a key that is none', { tls: { ...tls, key: 'x' } }],
    ['a certificate of another key', { tls: { ...tls, cert: file('client.crt') } }],
    ['certificates of nobody in particular', { tls: { ...tls, requestCert: true } }],
    ['an unknown option of tls', { tls: { ...tls, certs: '' } }],
    ['no users', { sasl: { users: {} } }],
    ['nothing of users', { sasl: {} }],
    ['a user without a name', { sasl: { users: { '': 'x' } } }],
    ['a user with a NUL', { sasl: { users: { 'a\0b': 'x' } } }],
    ['an empty password', { sasl: { users: { alice: '' } } }],
    ['a password that is a number', { sasl: { users: { alice: 1 } } }],
    ['a user with nothing', { sasl: { users: { alice: {} } } }],
    ['no mechanisms', { sasl: { users, mechanisms: [] } }],
    ['a mechanism that is not there', { sasl: { users, mechanisms: ['GSSAPI'] } }],
    ['PLAIN without TLS', { sasl: { users, mechanisms: ['PLAIN'] } }],
    ['too few iterations', { sasl: scram({ iterations: 4_095 }) }],
    ['too many iterations', { sasl: scram({ iterations: 1_000_001 }) }],
    ['half an iteration', { sasl: scram({ iterations: 4_096.5 }) }],
    ['a salt that is no base64', { sasl: scram({ salt: '-' }) }],
    ['a key of another size', { sasl: scram({ storedKey: 'AAAA' }) }],
    ['a key that is not there', { sasl: scram({ serverKey: undefined }) }],
    ['neither secure nor not', { insecure: 'yes' }],
  ])('are refused: %s', async (_, options) => {
    const error = await serve(createBroker(), { port: 0, ...options } as ServeOptions).catch(
      (e: unknown) => e,
    )
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it('are not changed by what becomes of their bytes afterwards', async () => {
    const key = Buffer.from(tls.key)
    const to = await served({ tls: { key, cert: Buffer.from(tls.cert) } })
    key.fill(0)
    expect(await versionsOf(await secure(to))).toBe(0)
  })
})
