/** A connection over a real socket: how requests come in, in which order they are answered, and how it ends. */
import { describe, expect, it } from 'vitest'
import { OdradekError } from '../../src/model/errors.ts'
import { type Answer, type Call, Disconnect } from '../../src/server/handler.ts'
import { LINGER_MS, MAX_IN_FLIGHT } from '../../src/server/limits.ts'
import { echo, echoed, echoOf, Kit, Later } from './kit.ts'
import type { WireClient } from './wire-client.ts'

const letters = (n: number): string[] => Array.from({ length: n }, (_, i) => `r${i}`)

async function namesFrom(client: WireClient, n: number, version = 1): Promise<string[]> {
  const names: string[] = []
  for (let i = 0; i < n; i++) names.push((await client.response(echo, version)).body.name)
  return names
}

describe('requests', () => {
  it('are taken out of a stream that comes a byte at a time', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    const stream = Buffer.concat([echoOf('a', { data: Buffer.from('xyz') }), echoOf('b', { version: 3 })])
    for (const byte of stream) {
      client.send(Uint8Array.of(byte))
      await kit.pass()
    }
    expect(await namesFrom(client, 1)).toEqual(['a'])
    expect(await namesFrom(client, 1, 3)).toEqual(['b'])
    expect(kit.started[0]?.request.data).toEqual(Uint8Array.from(Buffer.from('xyz')))
  })

  it('are answered with their correlation ids', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    client.send(echoOf('a', { id: 7 }), echoOf('b', { id: -2 }))
    expect((await client.response(echo, 1)).correlationId).toBe(7)
    expect((await client.response(echo, 1)).correlationId).toBe(-2)
  })

  it('are told who asks, where, and as whom', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    client.send(echoOf('a', { version: 2 }))
    await client.frame()
    const { version, clientId, client: who, listener, node } = kit.started[0]?.call ?? ({} as never)
    expect({ version, clientId, listener, id: node.id }).toEqual({
      version: 2,
      clientId: 'test',
      listener: 'PLAINTEXT',
      id: 0,
    })
    expect([who.host, who.principal, who.signal.aborted]).toEqual(['127.0.0.1', 'User:ANONYMOUS', false])
  })

  it('in flight may all wait for the end of their client, and no warning is given', async () => {
    const warnings: string[] = []
    const onWarning = ({ message }: Error): void => void warnings.push(message)
    process.on('warning', onWarning)
    const later = new Later()
    await using kit = await Kit.open({
      answer: (request, call) => {
        call.client.signal.addEventListener('abort', () => later.finish(request.name))
        return later.answer(request, call)
      },
    })
    const client = await kit.connect()
    client.send(...letters(MAX_IN_FLIGHT).map((name) => echoOf(name)))
    await kit.until(() => kit.started.length === MAX_IN_FLIGHT)
    client.close()
    await kit.connections[0]?.closed
    await kit.pass()
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })

  it('that came before the client said it sends no more are done, also without acknowledgement', async () => {
    await using kit = await Kit.open({ answer: () => null })
    const client = await kit.connect()
    client.send(...letters(MAX_IN_FLIGHT * 3).map((name) => echoOf(name)))
    client.socket.end()
    await client.closed
    expect(kit.names).toEqual(letters(MAX_IN_FLIGHT * 3))
  })
})

describe('responses', () => {
  it('leave in the order of the requests, whoever is ready first', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('a'), echoOf('b'), echoOf('c'))
    await kit.until(() => kit.started.length === 3)
    later.finish('c')
    later.finish('b')
    await kit.pass()
    expect(client.unread).toBe(0)
    later.finish('a')
    expect(await namesFrom(client, 3)).toEqual(['a', 'b', 'c'])
  })

  it('wait for nobody who wants none', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('silent', { id: 1 }), echoOf('b', { id: 2 }))
    await kit.until(() => kit.started.length === 2)
    later.finish('b')
    later.none('silent')
    expect((await client.response(echo, 1)).correlationId).toBe(2)
    client.send(echoOf('c', { id: 3 }))
    await kit.until(() => kit.started.length === 3)
    later.finish('c')
    expect((await client.response(echo, 1)).correlationId).toBe(3)
  })

  it('to one client do not wait for another one', async () => {
    const later = new Later()
    const answer = (request: Parameters<typeof echoed>[0], call: Call): Answer<ReturnType<typeof echoed>> =>
      request.name === 'slow' ? later.answer(request, call) : echoed(request)
    await using kit = await Kit.open({ answer })
    const [slow, quick] = [await kit.connect(), await kit.connect()]
    slow.send(echoOf('slow'))
    await kit.until(() => kit.started.length === 1)
    quick.send(echoOf('quick'))
    expect(await namesFrom(quick, 1)).toEqual(['quick'])
    later.finish('slow')
    expect(await namesFrom(slow, 1)).toEqual(['slow'])
  })
})

describe('back-pressure', () => {
  it('starts no more requests at once than are allowed, and the next one when one is answered', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    const names = letters(MAX_IN_FLIGHT + 2)
    client.send(...names.map((name) => echoOf(name)))
    await kit.until(() => kit.started.length >= MAX_IN_FLIGHT)
    await kit.pass()
    expect(kit.started).toHaveLength(MAX_IN_FLIGHT)
    later.finish('r1')
    await kit.pass()
    // Answered, but still in line.
    expect(kit.started).toHaveLength(MAX_IN_FLIGHT)
    later.finish('r0')
    await kit.until(() => kit.started.length === names.length)
    for (const name of names) later.finish(name)
    expect(await namesFrom(client, names.length)).toEqual(names)
  })

  it('does not ask for more on behalf of a client that does not read what it asked for', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    client.socket.pause()
    const answerBytes = 2 ** 18
    const names = letters(400)
    client.send(...names.map((name) => echoOf(name, { answerBytes })))
    await kit.until(() => kit.shared.buffered.bytes > 2 ** 20)
    await kit.pass()
    // 100 MiB were asked for. Beside the bound, the system's own buffers hold some.
    expect(kit.started.length * answerBytes).toBeLessThan(64 * 2 ** 20)
    expect(kit.shared.buffered.bytes).toBeLessThan(2 * 2 ** 20)
    client.socket.resume()
    expect(await namesFrom(client, names.length)).toEqual(names)
  })

  it('begins no request while all connections together hold too much, and goes on when they do not', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer, maxBufferedBytes: 1_000 })
    const [one, two, three] = [await kit.connect(), await kit.connect(), await kit.connect()]
    one.send(echoOf('big', { data: new Uint8Array(2_000) }))
    await kit.until(() => kit.started.length === 1)
    two.send(echoOf('two'))
    three.send(echoOf('three'))
    await kit.pass()
    expect(kit.names).toEqual(['big'])
    later.finish('big')
    await kit.until(() => kit.started.length === 3)
    expect(kit.names.slice(1).sort()).toEqual(['three', 'two'])
    later.finish('two')
    later.finish('three')
    expect(await namesFrom(two, 1)).toEqual(['two'])
    expect(await namesFrom(three, 1)).toEqual(['three'])
  })

  it('lets a request that has begun to arrive come to its end, however full it is', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer, maxBufferedBytes: 1_000 })
    const [one, two] = [await kit.connect(), await kit.connect()]
    const big = echoOf('big', { data: new Uint8Array(2_000) })
    one.send(big.subarray(0, 500))
    await kit.until(() => kit.shared.buffered.full)
    two.send(echoOf('two'))
    await kit.pass()
    expect(kit.names).toEqual([])
    one.send(big.subarray(500))
    await kit.until(() => kit.started.length === 1)
    later.finish('big')
    await kit.until(() => kit.started.length === 2)
    expect(kit.names).toEqual(['big', 'two'])
    later.finish('two')
    expect(await namesFrom(two, 1)).toEqual(['two'])
  })

  it('forgets a connection that waits for room and is closed', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer, maxBufferedBytes: 1_000 })
    const [one, two] = [await kit.connect(), await kit.connect()]
    one.send(echoOf('big', { data: new Uint8Array(2_000) }))
    await kit.until(() => kit.started.length === 1)
    two.send(echoOf('two'))
    await kit.pass()
    kit.connections[1]?.destroy()
    await kit.connections[1]?.closed
    later.finish('big')
    await one.frame()
    expect(kit.names).toEqual(['big'])
  })
})

describe('a frame that is none', () => {
  const size = (bytes: number): Buffer => {
    const buffer = Buffer.alloc(4)
    buffer.writeInt32BE(bytes)
    return buffer
  }

  it.each([
    [
      'too large',
      size(2 ** 20 + 1),
      'a request of 1048577 bytes; at most 1048576 are taken (maxRequestBytes)',
    ],
    ['negative', size(-1), "a request of -1 bytes: this is not Kafka's protocol"],
    [
      'of TLS',
      Buffer.from([22, 3, 1, 2, 0]),
      'this looks like a TLS handshake on a plaintext port: the client has TLS on, this listener has not',
    ],
    [
      'of HTTP',
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      "this looks like an HTTP request, on a port of Kafka's protocol",
    ],
    ['of SSH', Buffer.from('SSH-2.0'), "this looks like a client of SSH, on a port of Kafka's protocol"],
  ])('closes its connection, %s', async (_, bytes, reason) => {
    await using kit = await Kit.open()
    const [bad, good] = [await kit.connect(), await kit.connect()]
    bad.send(bytes)
    await bad.closed
    expect(kit.reasons('warn')).toEqual([reason])
    good.send(echoOf('good'))
    expect(await namesFrom(good, 1)).toEqual(['good'])
  })

  it.each([
    ['no header', Buffer.from([0, 0, 0, 2, 0, 0]), /^malformed frame/],
    ['nothing at all', size(0), /^malformed frame/],
    ['half a body', Buffer.concat([size(14), echoOf('abc').subarray(4, 18)]), /^malformed frame/],
  ])('closes its connection, with %s', async (_, bytes, reason) => {
    await using kit = await Kit.open()
    const bad = await kit.connect()
    bad.send(bytes)
    await bad.closed
    expect(kit.reasons('warn')).toEqual([expect.stringMatching(reason)])
    expect(kit.started).toEqual([])
  })

  it('does not take back what was answered before it', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    client.send(echoOf('a'), size(-1))
    expect(await namesFrom(client, 1)).toEqual(['a'])
    expect(await client.frame()).toBeUndefined()
  })
})

describe('a handler that fails', () => {
  it.each([
    [
      'at once',
      () => {
        throw new Error('broken')
      },
    ],
    ['later', () => Promise.reject(new Error('broken'))],
  ])('%s closes its connection, and the log says what was asked', async (_, answer) => {
    await using kit = await Kit.open({ answer })
    const client = await kit.connect()
    client.send(echoOf('a', { version: 2 }), echoOf('b'))
    await client.closed
    const { level, details, message } = kit.logged.find((each) => each.level === 'error') as never
    expect(level).toBe('error')
    expect(message).toBe('a request failed, and its connection is closed')
    expect(details).toMatchObject({
      request: 'Echo, version 2, of "test"',
      client: '127.0.0.1',
      listener: 'PLAINTEXT',
      reason: 'broken',
    })
  })

  it('may ask for the connection to be closed, which is no error', async () => {
    await using kit = await Kit.open({ answer: () => Promise.reject(new Disconnect('no acks')) })
    const client = await kit.connect()
    client.send(echoOf('a'))
    await client.closed
    expect(kit.reasons('info')).toEqual(['no acks'])
    expect(kit.reasons('error')).toEqual([])
  })

  it.each([
    ['whose broker is closed', new OdradekError('CLOSED', 'the broker is closed')],
    ['that says so', new Disconnect('enough')],
  ])('is no fault of ours where it is one %s', async (_, error) => {
    await using kit = await Kit.open({ answer: () => Promise.reject(error) })
    const client = await kit.connect()
    client.send(echoOf('a'))
    await client.closed
    expect([kit.reasons('info'), kit.reasons('error')]).toEqual([[error.message], []])
  })

  it('is nobody’s concern when its client is gone', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('a'))
    await kit.until(() => kit.started.length === 1)
    client.close()
    await kit.until(() => kit.started[0]?.call.client.signal.aborted === true)
    later.fail('a', new Error('aborted'))
    await kit.connections[0]?.closed
    expect(kit.reasons('error')).toEqual([])
  })

  it('ends the others of its connection, which are told', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('a'), echoOf('b'))
    await kit.until(() => kit.started.length === 2)
    later.fail('b', new Error('broken'))
    await client.closed
    expect(kit.started[0]?.call.client.signal.aborted).toBe(true)
    // Its room is given back when it ends, not before.
    expect(kit.shared.buffered.bytes).toBeGreaterThan(0)
    later.finish('a')
    await kit.pass()
    expect(kit.shared.buffered.bytes).toBe(0)
  })
})

describe('a client that says it sends no more', () => {
  it('gets what it asked for, and then the end', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('a'))
    client.socket.end()
    await kit.until(() => kit.started[0]?.call.client.signal.aborted === true)
    later.finish('a')
    expect(await namesFrom(client, 1)).toEqual(['a'])
    expect(await client.closed).toBe(0)
    await kit.connections[0]?.closed
  })

  it('is not waited for without end', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('a'))
    client.socket.end()
    await kit.until(() => kit.started[0]?.call.client.signal.aborted === true)
    await kit.clock.advance(LINGER_MS)
    await client.closed
    expect(kit.reasons('info')).toEqual(['it sends no more, and what it asked for is not done'])
    later.finish('a')
  })

  it('in the middle of a request is let go', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    client.send(echoOf('abc', { data: new Uint8Array(100) }).subarray(0, 50))
    client.socket.end()
    await client.closed
    await kit.connections[0]?.closed
    expect(kit.started).toEqual([])
    expect(kit.shared.buffered.bytes).toBe(0)
  })

  it('is gone when it resets the connection', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('a'))
    await kit.until(() => kit.started.length === 1)
    client.socket.resetAndDestroy()
    await kit.connections[0]?.closed
    expect(kit.started[0]?.call.client.signal.aborted).toBe(true)
    later.finish('a')
  })
})

describe('an idle connection', () => {
  it('is closed after its time, counted from the last byte', async () => {
    await using kit = await Kit.open({ maxIdleMs: 1_000 })
    const client = await kit.connect()
    await kit.until(() => kit.connections.length === 1)
    await kit.clock.advance(900)
    client.send(echoOf('a'))
    await client.frame()
    await kit.pass()
    await kit.clock.advance(999)
    client.send(echoOf('b'))
    expect(await namesFrom(client, 1)).toEqual(['b'])
    await kit.pass()
    await kit.clock.advance(1_000)
    await client.closed
    expect(kit.reasons('info')).toEqual(['it was idle for too long (maxIdleMs)'])
  })

  it('is not one that waits for an answer', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer, maxIdleMs: 1_000 })
    const client = await kit.connect()
    client.send(echoOf('a'))
    await kit.until(() => kit.started.length === 1)
    await kit.clock.advance(10_000)
    later.finish('a')
    expect(await namesFrom(client, 1)).toEqual(['a'])
  })

  it('is one whose client does not read', async () => {
    await using kit = await Kit.open({ maxIdleMs: 1_000 })
    const client = await kit.connect()
    client.socket.pause()
    client.send(...letters(100).map((name) => echoOf(name, { answerBytes: 2 ** 18 })))
    await kit.until(() => kit.shared.buffered.bytes > 2 ** 20)
    await kit.pass()
    await kit.clock.advance(1_000)
    await kit.connections[0]?.closed
    expect(kit.shared.buffered.bytes).toBe(0)
  })

  it('is one that stops in the middle of a request', async () => {
    await using kit = await Kit.open({ maxIdleMs: 1_000 })
    const client = await kit.connect()
    client.send(echoOf('abc').subarray(0, 10))
    await kit.until(() => kit.shared.buffered.bytes > 0)
    await kit.clock.advance(1_000)
    await client.closed
    expect(kit.started).toEqual([])
  })
})

describe('drain', () => {
  it('closes at once who waits for nothing', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    await kit.until(() => kit.connections.length === 1)
    kit.connections[0]?.drain()
    await client.closed
    await kit.connections[0]?.closed
  })

  it('wakes what waits, starts nothing more, and closes when all is answered', async () => {
    const later = new Later()
    await using kit = await Kit.open({ answer: later.answer })
    const client = await kit.connect()
    client.send(echoOf('a'))
    await kit.until(() => kit.started.length === 1)
    const connection = kit.connections[0]
    connection?.drain()
    expect(kit.started[0]?.call.client.signal.aborted).toBe(true)
    client.send(echoOf('b'))
    await kit.pass()
    expect(kit.names).toEqual(['a'])
    later.finish('a')
    expect(await namesFrom(client, 1)).toEqual(['a'])
    await connection?.closed
  })
})
