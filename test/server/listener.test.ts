/** A port: connections before anybody takes them, and addresses in one form. */
import { connect, type Server, type Socket } from 'node:net'
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
