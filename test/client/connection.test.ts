import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Connection } from '../../src/client/connection.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { startTestServer } from '../../src/testing/test-server.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { addressOf, CONNECTION } from './kit.ts'

/** A server that is no broker: `answer` gets every chunk. */
async function fake(
  answer: (chunk: Buffer, socket: Socket) => void,
): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => {
    socket.on('data', (chunk) => answer(chunk, socket)).on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as { port: number }).port }
}

/** An ApiVersions answer of version 3 that knows ApiVersions alone; with error 35 one of version 0 that knows nothing. */
function versionsAnswer(request: Buffer, errorCode = 0, correlation = request.readInt32BE(8)): Buffer {
  const isOld = errorCode === 35
  const body = Buffer.alloc(isOld ? 4 + 4 + 2 + 4 : 4 + 4 + 2 + 1 + 7 + 4 + 1)
  body.writeInt32BE(body.length - 4, 0)
  body.writeInt32BE(correlation, 4)
  body.writeInt16BE(errorCode, 8)
  if (isOld) return body
  body.writeUInt8(2, 10)
  body.writeInt16BE(18, 11)
  body.writeInt16BE(0, 13)
  body.writeInt16BE(3, 15)
  return body
}

describe('a connection', () => {
  it('speaks every API in the newest version of both sides, and none that one side lacks', async () => {
    await using kafka = await startTestServer()
    const connection = await Connection.open(addressOf(kafka.bootstrap), CONNECTION)
    expect(connection.versionOf(metadata)).toBe(13)
    expect(connection.versionOf(metadata, 9)).toBe(9)
    const [first, second] = await Promise.all([
      connection.request(metadata, { topics: [], allowAutoTopicCreation: false }),
      connection.request(apiVersions, { clientSoftwareName: 'a', clientSoftwareVersion: '1' }),
    ])
    expect(first.brokers).toHaveLength(1)
    expect(second.apiKeys.length).toBe(connection.versions.size)
    connection.close()
    expect(connection.isOpen).toBe(false)
    await expect(connection.request(metadata, { topics: [] })).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('says that nobody listens, and what is no broker', async () => {
    const { server, port } = await fake((_, socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const address = { host: '127.0.0.1', port }
    await expect(Connection.open(address, CONNECTION)).rejects.toMatchObject({ code: 'PROTOCOL_ERROR' })
    server.close()
    await once(server, 'close')
    await expect(Connection.open(address, CONNECTION)).rejects.toMatchObject({
      code: 'CONNECTION_FAILED',
      message: `127.0.0.1:${port}: nobody listens there`,
    })
  })

  it('does not speak to a broker that is too old, nor an API that the broker lacks', async () => {
    let errorCode = 35
    const { server, port } = await fake((chunk, socket) => socket.write(versionsAnswer(chunk, errorCode)))
    const address = { host: '127.0.0.1', port }
    await expect(Connection.open(address, CONNECTION)).rejects.toMatchObject({ code: 'UNSUPPORTED' })
    errorCode = 0
    const connection = await Connection.open(address, CONNECTION)
    expect(connection.versionOf(fetch)).toBeUndefined()
    await expect(connection.request(metadata, { topics: [] })).rejects.toMatchObject({ code: 'UNSUPPORTED' })
    expect(() => connection.send(metadata, { topics: [] })).toThrow('does not speak Metadata')
    connection.close()
    server.close()
  })

  it('ends with an answer that was not asked for, with one that is too large, and when the broker goes', async () => {
    const answers = [
      (chunk: Buffer) => versionsAnswer(chunk, 0, 99),
      () => Buffer.from([0, 0, 0, 2, 1, 1]),
      () => Buffer.from([0x7f, 0xff, 0xff, 0xff]),
      () => undefined,
    ]
    const { server, port } = await fake((chunk, socket) => {
      const answer = answers.shift()?.(chunk)
      if (answer === undefined) socket.destroy()
      else socket.write(answer)
    })
    const open = () => Connection.open({ host: '127.0.0.1', port }, CONNECTION)
    for (let i = 0; i < 2; i++) {
      await expect(open()).rejects.toMatchObject({ message: expect.stringContaining('what was not asked') })
    }
    await expect(open()).rejects.toMatchObject({ message: expect.stringContaining('bytes; at most') })
    await expect(open()).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    server.close()
  })

  it('may be by TLS, to a broker that has a certificate of the authority', async () => {
    const file = (name: string): string =>
      readFileSync(join(import.meta.dirname, '..', 'fixtures', 'tls', name), 'utf8')
    const tls = { key: file('server.key'), cert: file('server.crt') }
    await using kafka = await startTestServer({ tls })
    const { port } = addressOf(kafka.bootstrap)
    for (const host of ['localhost', '127.0.0.1']) {
      const connection = await Connection.open({ host, port }, { ...CONNECTION, tls: { ca: file('ca.crt') } })
      expect((await connection.request(metadata, { topics: [] })).brokers).toHaveLength(1)
      connection.close()
    }
    await expect(
      Connection.open({ host: 'localhost', port }, { ...CONNECTION, tls: {} }),
    ).rejects.toMatchObject({
      code: 'CONNECTION_FAILED',
      message: expect.stringContaining('certificate'),
    })
  })

  it('is given up where nobody answers on the way to it, in the time that it was told', async () => {
    const clock = new ManualClock()
    const asked = deferred()
    const { server, port } = await fake(() => asked.resolve(undefined))
    // It hears the beginning of a handshake, and says nothing.
    const options = { ...CONNECTION, clock, timeoutMs: 500, tls: {} }
    const opening = Connection.open({ host: '127.0.0.1', port }, options)
    const failed = expect(opening).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: `127.0.0.1:${port} does not answer`,
    })
    await asked.promise
    await clock.advance(500)
    await failed
    server.close()
  })

  it('names an IPv6 address so that the port can be told from it', async () => {
    await expect(Connection.open({ host: '::1', port: 1 }, CONNECTION)).rejects.toMatchObject({
      message: '[::1]:1: nobody listens there',
    })
  })

  it('waits for an answer as long as it was told, and ends then', async () => {
    const clock = new ManualClock()
    const asked = deferred()
    const { server, port } = await fake(() => asked.resolve(undefined))
    const opening = Connection.open({ host: '127.0.0.1', port }, { ...CONNECTION, clock, timeoutMs: 500 })
    const failed = expect(opening).rejects.toMatchObject({ code: 'TIMEOUT' })
    await asked.promise
    await clock.advance(500)
    await failed
    server.close()
  })
})

function deferred(): { promise: Promise<unknown>; resolve: (value: unknown) => void } {
  let resolve: (value: unknown) => void = () => undefined
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}
