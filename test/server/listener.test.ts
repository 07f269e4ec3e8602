/** A port: connections before anybody takes them, and addresses in one form. */
import { readFileSync } from 'node:fs'
import { connect, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as tlsConnect } from 'node:tls'
import { describe, expect, it, vi } from 'vitest'
import { hostOf, Listener, type Visitors } from '../../src/server/listener.ts'

const HOST = '127.0.0.1'
const NOBODY: Visitors = { admit: () => true, accept: () => {}, failed: () => {}, onError: () => {} }

async function connected(port: number): Promise<Socket> {
  const socket = connect({ host: HOST, port })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  return socket
}

/** Lets the listener hear of what the system has done. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
}

describe('a connection that comes before somebody takes it', () => {
  it('is held, with what it sent', async () => {
    const listener = await Listener.open({ host: HOST, port: 0 })
    const client = await connected(listener.address.port)
    client.write('hello')
    await turns()
    const taken = await new Promise<Socket>((resolve) => listener.start({ ...NOBODY, accept: resolve }))
    const text = await new Promise<string>((resolve) => taken.once('data', (data) => resolve(String(data))))
    expect(text).toBe('hello')
    client.destroy()
    taken.destroy()
    await listener.close()
  })

  it('may fail meanwhile', async () => {
    const listener = await Listener.open({ host: HOST, port: 0 })
    const client = await connected(listener.address.port)
    await turns()
    client.resetAndDestroy()
    await turns()
    await listener.close()
  })

  it('ends when nobody ever takes it', async () => {
    const listener = await Listener.open({ host: HOST, port: 0 })
    const client = await connected(listener.address.port)
    const closed = new Promise((resolve) => client.once('close', resolve))
    await turns()
    client.resume()
    await listener.close()
    await closed
  })
})

describe('a connection by TLS', () => {
  const file = (name: string): string =>
    readFileSync(join(import.meta.dirname, '..', 'fixtures', 'tls', name), 'utf8')
  const settings = { key: file('server.key'), cert: file('server.crt'), requestCert: false }
  const open = (): Promise<Listener> => Listener.open({ host: HOST, port: 0 }, settings)

  it('is admitted and taken, also one that came before somebody does', async () => {
    const listener = await open()
    const client = tlsConnect({ host: HOST, port: listener.address.port, ca: file('ca.crt') })
    await new Promise<void>((resolve) => client.once('secureConnect', () => resolve()))
    const order: string[] = []
    const taken = await new Promise<Socket>((resolve) => {
      listener.start({
        ...NOBODY,
        admit: () => order.push('admitted') > 0,
        accept: (socket) => {
          order.push('accepted')
          resolve(socket)
        },
      })
    })
    expect(order).toEqual(['admitted', 'accepted'])
    client.destroy()
    taken.destroy()
    await listener.close()
  })

  it('may shake hands before somebody takes it, or after', async () => {
    const listener = await open()
    const early = await connected(listener.address.port)
    await turns()
    const accepted = new Promise<Socket>((resolve) => listener.start({ ...NOBODY, accept: resolve }))
    const client = tlsConnect({ socket: early, servername: 'localhost', ca: file('ca.crt') })
    const taken = await accepted
    client.destroy()
    taken.destroy()
    await listener.close()
  })

  it('is not handed over when it has gone before somebody takes it', async () => {
    const listener = await open()
    const under = await connected(listener.address.port)
    const client = tlsConnect({ socket: under, servername: 'localhost', ca: file('ca.crt') })
    client.on('error', () => {})
    await new Promise<void>((resolve) => client.once('secureConnect', () => resolve()))
    await turns()
    under.resetAndDestroy()
    await turns()
    const heard: string[] = []
    const admit = () => heard.push('admitted') > 0
    listener.start({ ...NOBODY, admit, accept: () => heard.push('accepted') })
    await turns()
    expect(heard).toEqual([])
    await listener.close()
  })

  it('may be refused, or fail in the middle of its handshake', async () => {
    const listener = await open()
    const told: string[] = []
    let admits = false
    listener.start({
      ...NOBODY,
      admit: () => admits,
      failed: (host, _, gone) => told.push(`${host} ${gone}`),
    })
    const refused = await connected(listener.address.port)
    refused.on('error', () => {})
    await new Promise((resolve) => refused.once('close', resolve))
    admits = true
    const failing = await connected(listener.address.port)
    await turns()
    failing.resetAndDestroy()
    while (told.length < 2) await turns()
    expect(told.every((text) => text.endsWith(' true'))).toBe(true)
    await listener.close()
  })
})

describe('a connection that the system cannot hand over', () => {
  it('is told, and the port stays open', async () => {
    const net = await import('node:net')
    const servers: Server[] = []
    const listen = net.Server.prototype.listen
    vi.spyOn(net.Server.prototype, 'listen').mockImplementation(function (this: Server, ...args: unknown[]) {
      servers.push(this)
      return listen.apply(this, args as never)
    } as never)
    const listener = await Listener.open({ host: HOST, port: 0 })
    const [server] = servers as [Server]
    // Nobody listens to it yet: it must not end the process.
    server.emit('error', new Error('EMFILE'))
    const told: string[] = []
    listener.start({
      ...NOBODY,
      accept: (socket) => socket.destroy(),
      onError: (error) => told.push(error.message),
    })
    server.emit('error', new Error('EMFILE'))
    expect(told).toEqual(['EMFILE'])
    ;(await connected(listener.address.port)).destroy()
    await listener.close()
  })
})

describe('an address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:10.0.0.7', '10.0.0.7'],
    ['::1', '::1'],
    [undefined, 'unknown'],
  ])('of %s is %s', (remoteAddress, host) => {
    expect(hostOf({ remoteAddress } as Socket)).toBe(host)
  })
})
