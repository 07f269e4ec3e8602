/** A served broker as its clients see it: over real sockets, at ports that the system chose. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import { openBroker } from '../../src/index.ts'
import { createBroker } from '../../src/memory.ts'
import type { Logger } from '../../src/model/views.ts'
import { handler } from '../../src/server/handler.ts'
import { HANDLERS } from '../../src/server/handlers.ts'
import { KafkaServer, type ServerAddress, serve } from '../../src/server/server.ts'
import { serverSettings } from '../../src/server/server-options.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { codeOf, watch } from '../support/world.ts'
import { echo, echoOf, Later } from './kit.ts'
import { WireClient } from './wire-client.ts'

const SOFTWARE = { clientSoftwareName: 'test', clientSoftwareVersion: '1.0' }

const addressOf = (server: KafkaServer, index = 0): ServerAddress => server.addresses[index] as ServerAddress
const connectTo = (server: KafkaServer, index = 0): Promise<WireClient> =>
  WireClient.connect(addressOf(server, index))

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Warnings, as text. */
function logTo(lines: string[]): Logger {
  const quiet = (): void => {}
  return {
    debug: quiet,
    info: quiet,
    warn: (_, message) => void lines.push(message),
    error: (_, message) => void lines.push(message),
  }
}

describe('serve', () => {
  it.each([0, 1, 2, 3, 4])('answers ApiVersions, version %i, with what is handled', async (version) => {
    await using broker = createBroker()
    await using server = await serve(broker, { port: 0 })
    using client = await connectTo(server)
    const { errorCode, apiKeys } = await client.ask(apiVersions, version, SOFTWARE)
    expect(errorCode).toBe(0)
    expect(apiKeys).toEqual(
      HANDLERS.map(({ api, advertised: [minVersion, maxVersion] }) => {
        return { apiKey: api.key, minVersion, maxVersion }
      }),
    )
  })

  it('says where it listens, and what clients begin with', async () => {
    await using broker = createBroker()
    await using server = await serve(broker, { port: 0 })
    const { port } = addressOf(server)
    expect(server.addresses).toEqual([{ listener: 'PLAINTEXT', node: 0, host: '127.0.0.1', port }])
    expect(port).toBeGreaterThan(0)
    expect(server.bootstrap).toBe(`127.0.0.1:${port}`)
    expect(server.clusterId).toMatch(/^[\w-]{22}$/)
  })

  it('listens on IPv6', async () => {
    await using broker = createBroker()
    await using server = await serve(broker, { host: '::1', port: 0 })
    expect(server.bootstrap).toBe(`[::1]:${addressOf(server).port}`)
    using client = await connectTo(server)
    expect((await client.ask(apiVersions, 0, {})).errorCode).toBe(0)
  })

  it('advertises something else than where it listens, if told so', async () => {
    await using broker = createBroker()
    const advertised = { host: 'kafka.example', port: 19_092 }
    await using server = await serve(broker, { port: 0, nodes: 2, advertised })
    expect(server.bootstrap).toBe('kafka.example:19092,kafka.example:19093')
  })

  it('warns who listens everywhere and does not say under which name', async () => {
    const warned: object[] = []
    const logger = { debug() {}, info() {}, error() {}, warn: (about: object) => void warned.push(about) }
    await using broker = createBroker({ logger })
    const everywhere = { host: '0.0.0.0', port: 0, insecure: true }
    await (await serve(broker, { ...everywhere, advertised: { host: 'kafka.example' } })).close()
    await (await serve(broker, { port: 0 })).close()
    expect(warned).toEqual([])
    await using _ = await serve(broker, everywhere)
    expect(warned).toEqual([{ host: '0.0.0.0', listener: 'PLAINTEXT', advertised: 'localhost' }])
  })

  it('has a port for each node and listener, and answers at all of them', async () => {
    await using broker = createBroker()
    const listeners = [
      { name: 'IN', port: 0 },
      { name: 'OUT', port: 0 },
    ]
    await using server = await serve(broker, { listeners, nodes: 3 })
    expect(server.addresses.map(({ listener, node }) => `${listener} ${node}`)).toEqual([
      'IN 0',
      'IN 1',
      'IN 2',
      'OUT 0',
      'OUT 1',
      'OUT 2',
    ])
    expect(new Set(server.addresses.map(({ port }) => port)).size).toBe(6)
    for (let i = 0; i < 6; i++) {
      using client = await connectTo(server, i)
      expect((await client.ask(apiVersions, 0, {})).errorCode).toBe(0)
    }
    const ports = server.addresses.slice(0, 3).map(({ port }) => `127.0.0.1:${port}`)
    expect(server.bootstrap).toBe(ports.join())
  })

  it('takes ports that follow one another for several nodes', async () => {
    await using broker = createBroker()
    // Two that are free now: somebody else may take them meanwhile, which another try mends.
    const attempt = async (): Promise<KafkaServer | undefined> => {
      await using probe = await serve(broker, { port: 0 })
      const { port } = addressOf(probe)
      await probe.close()
      return serve(broker, { port, nodes: 2 }).catch(() => undefined)
    }
    let server = await attempt()
    while (server === undefined) server = await attempt()
    await using _ = server
    expect(addressOf(server, 1).port).toBe(addressOf(server).port + 1)
  })

  it('refuses a broker that is served already, until that ends', async () => {
    await using broker = createBroker()
    const server = await serve(broker, { port: 0 })
    expect(await codeOf(serve(broker, { port: 0 }))).toBe('INVALID_ARGUMENT')
    await server.close()
    await (await serve(broker, { port: 0 })).close()
  })

  it('refuses options that cannot be, and the broker can be served all the same', async () => {
    await using broker = createBroker()
    expect(await codeOf(serve(broker, { port: -1 }))).toBe('INVALID_ARGUMENT')
    await using server = await serve(broker, { port: 0 })
    expect(await codeOf(server.close({ drainMs: -1 }))).toBe('INVALID_ARGUMENT')
  })
})

describe('a port that cannot be had', () => {
  it('is an error that says whose fault it is, and leaves nothing open', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    await using broker = createBroker()
    const listeners = [
      { name: 'A', port: 0 },
      { name: 'B', port },
    ]
    const error = await serve(broker, { listeners }).catch((e: unknown) => e)
    expect(error).toMatchObject({
      code: 'LISTEN_ERROR',
      message: `cannot listen on port ${port} of 127.0.0.1: another program has it; choose another port, or 0 for a free one`,
    })
    await new Promise((resolve) => other.close(resolve))
    // The broker was not left as served.
    await (await serve(broker, { port })).close()
  })

  // Whoever is root may have all of them.
  it.skipIf(process.getuid?.() === 0)('may need a permission', async () => {
    await using broker = createBroker()
    const error = await serve(broker, { port: 1 }).catch((e: unknown) => e)
    expect(error).toMatchObject({
      code: 'LISTEN_ERROR',
      message:
        'cannot listen on port 1 of 127.0.0.1: this process may not; ports below 1,024 need a permission',
    })
  })

  it('may be one of another machine', async () => {
    await using broker = createBroker()
    const error = await serve(broker, { host: '192.0.2.1', port: 0, insecure: true }).catch((e: unknown) => e)
    expect(error).toMatchObject({
      code: 'LISTEN_ERROR',
      message: 'cannot listen on port 0 of 192.0.2.1: that is no address of this machine',
    })
  })
})

describe('the cluster id', () => {
  it('stays as long as the broker', async () => {
    await using broker = createBroker()
    const first = await serve(broker, { port: 0 })
    await first.close()
    await using second = await serve(broker, { port: 0 })
    expect(second.clusterId).toBe(first.clusterId)
    await using other = createBroker()
    await using elsewhere = await serve(other, { port: 0 })
    expect(elsewhere.clusterId).not.toBe(first.clusterId)
  })

  it('outlives the process where records do', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'odradek-serve-'))
    const ids: string[] = []
    for (let run = 0; run < 2; run++) {
      await using broker = await openBroker(`file:${join(directory, 'data')}`)
      await using server = await serve(broker, { port: 0 })
      ids.push(server.clusterId)
    }
    await rm(directory, { recursive: true })
    expect(ids[1]).toBe(ids[0])
  })
})

describe('connections', () => {
  it('are counted, and refused beyond their bound, which is told once', async () => {
    const told: string[] = []
    await using broker = createBroker({ logger: logTo(told) })
    await using server = await serve(broker, { port: 0, maxConnections: 2 })
    using first = await connectTo(server)
    await first.ask(apiVersions, 0, {})
    using second = await connectTo(server)
    await second.ask(apiVersions, 0, {})
    for (let i = 0; i < 3; i++) {
      using refused = await connectTo(server)
      await refused.closed
    }
    expect(server.connections).toBe(2)
    expect(told).toEqual(['a connection is refused: there are 2 connections already (maxConnections)'])
    first.close()
    while (server.connections === 2) await turn()
    using again = await connectTo(server)
    expect((await again.ask(apiVersions, 0, {})).errorCode).toBe(0)
  })

  it('are refused beyond the bound of their address', async () => {
    const told: string[] = []
    await using broker = createBroker({ logger: logTo(told) })
    await using server = await serve(broker, { port: 0, maxConnectionsPerAddress: 1 })
    using first = await connectTo(server)
    await first.ask(apiVersions, 0, {})
    using refused = await connectTo(server)
    await refused.closed
    expect(told).toEqual([
      'a connection is refused: 127.0.0.1 has 1 connections already (maxConnectionsPerAddress)',
    ])
  })

  it('end when they are idle', async () => {
    const clock = new ManualClock()
    await using broker = createBroker({ clock })
    await using server = await serve(broker, { port: 0, maxIdleMs: 1_000 })
    using client = await connectTo(server)
    await client.ask(apiVersions, 0, {})
    await turn()
    await clock.advance(1_000)
    await client.closed
    expect(clock.pending).toBe(0)
  })
})

/** A server whose requests wait until the test answers them. */
async function serveLater(
  clock?: ManualClock,
): Promise<{ server: KafkaServer; later: Later; broker: Broker }> {
  const broker = createBroker(clock === undefined ? {} : { clock })
  const later = new Later()
  const server = await KafkaServer.open(broker, serverSettings({ port: 0 }), {
    handlers: [handler(echo, later.answer)],
    interceptors: [],
    onClosed: () => {},
  })
  return { server, later, broker }
}

describe('close', () => {
  it('lets what is in flight be answered', async () => {
    const { server, later, broker } = await serveLater()
    await using _ = broker
    using client = await connectTo(server)
    client.send(echoOf('a'))
    while (later.size === 0) await turn()
    const closed = watch(server.close())
    await turn()
    expect(closed.state).toBe('waiting')
    expect(later.signals[0]?.aborted).toBe(true)
    later.finish('a')
    expect((await client.response(echo, 1)).body.name).toBe('a')
    await client.closed
    while (closed.state === 'waiting') await turn()
    expect(closed.state).toBe('resolved')
  })

  it('waits for it no longer than it was told', async () => {
    const clock = new ManualClock()
    const { server, later, broker } = await serveLater(clock)
    await using _ = broker
    using client = await connectTo(server)
    client.send(echoOf('a'))
    while (later.size === 0) await turn()
    const closed = watch(server.close({ drainMs: 500 }))
    await clock.advance(499)
    expect(closed.state).toBe('waiting')
    await clock.advance(1)
    await client.closed
    while (closed.state === 'waiting') await turn()
    expect(await client.frame()).toBeUndefined()
    later.finish('a')
  })

  it('waits for nobody if it must not', async () => {
    const { server, later, broker } = await serveLater()
    await using _ = broker
    using client = await connectTo(server)
    client.send(echoOf('a'))
    while (later.size === 0) await turn()
    await server.close({ drainMs: 0 })
    expect(await client.frame()).toBeUndefined()
    expect(server.connections).toBe(0)
    later.finish('a')
  })

  it('ends connections that wait for nothing, refuses new ones, and leaves no timer', async () => {
    const clock = new ManualClock()
    await using broker = createBroker({ clock })
    const server = await serve(broker, { port: 0 })
    using client = await connectTo(server)
    await client.ask(apiVersions, 0, {})
    await server.close()
    await client.closed
    expect(broker.parts.ctx.due.size).toBe(0)
    await expect(connectTo(server)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('may be asked for again', async () => {
    await using broker = createBroker()
    const server = await serve(broker, { port: 0 })
    const closing = server.close()
    expect(server.close()).toBe(closing)
    await closing
  })

  it('leaves the broker open', async () => {
    await using broker = createBroker()
    await (await serve(broker, { port: 0 })).close()
    await broker.createTopic('orders')
    expect(broker.listTopics()).toEqual(['orders'])
  })

  it('comes after the broker as well', async () => {
    const broker = createBroker()
    const server = await serve(broker, { port: 0 })
    using client = await connectTo(server)
    await client.ask(apiVersions, 0, {})
    await broker.close()
    await server.close()
    await client.closed
  })
})
