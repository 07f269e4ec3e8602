/** Room that all connections share: who holds it, who waits for it, and who has to go for it. */
import { describe, expect, it } from 'vitest'
import { LOOK_EVERY_MS, MIN_PROGRESS_BYTES } from '../../src/server/limits.ts'
import { echo, echoOf, Kit, Later } from './kit.ts'
import type { WireClient } from './wire-client.ts'

const ROOM = 300_000
const MiB = 2 ** 20
const TOO_SLOW = 'it holds room that others wait for, and sends too slowly'
const READS_NOT = 'it holds room that others wait for, and reads too slowly'

function lengthOf(sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(sizeBytes)
  return bytes
}

/** A client that has announced much and sent little. */
async function announcer(kit: Kit, sizeBytes = ROOM): Promise<WireClient> {
  const client = await kit.connect()
  const before = kit.shared.buffered.bytes
  client.send(lengthOf(sizeBytes), Buffer.alloc(10))
  await kit.until(() => kit.shared.buffered.bytes > before)
  return client
}

describe('who announces a large request and sends little of it', () => {
  it('goes for others who wait for the room, ten seconds later', async () => {
    await using kit = await Kit.open({ maxBufferedBytes: ROOM })
    const slow = await announcer(kit)
    const honest = await kit.connect()
    honest.send(echoOf('honest'))
    await kit.pass()
    expect(kit.started).toEqual([])
    await kit.clock.advance(LOOK_EVERY_MS - 1)
    expect(kit.reasons('warn')).toEqual([])
    await kit.clock.advance(1)
    expect((await honest.response(echo, 1)).body.name).toBe('honest')
    await slow.closed
    expect(kit.reasons('warn')).toEqual([TOO_SLOW])
  })

  it('stays while nobody waits', async () => {
    await using kit = await Kit.open({ maxBufferedBytes: 2 * ROOM })
    const slow = await announcer(kit)
    const honest = await kit.connect()
    for (let i = 0; i < 6; i++) {
      await kit.clock.advance(LOOK_EVERY_MS)
      honest.send(echoOf('honest'))
      await honest.frame()
    }
    expect(kit.reasons('warn')).toEqual([])
    expect(kit.connections[0]?.session.signal.aborted).toBe(false)
    slow.close()
  })

  it('goes however many of them there are, and however often they send a byte', async () => {
    await using kit = await Kit.open({ maxBufferedBytes: ROOM })
    const slow = [
      await announcer(kit, ROOM / 3),
      await announcer(kit, ROOM / 3),
      await announcer(kit, ROOM / 3),
    ]
    const honest = await kit.connect()
    honest.send(echoOf('honest'))
    await kit.pass()
    for (let second = 0; second < 10; second++) {
      for (const client of slow) client.send(Buffer.alloc(1))
      await kit.pass()
      await kit.clock.advance(1_000)
    }
    expect((await honest.response(echo, 1)).body.name).toBe('honest')
  })

  it('is not who goes, where it sends a mebibyte a second', async () => {
    const maxRequestBytes = 64 * MiB
    await using kit = await Kit.open({ maxRequestBytes, maxBufferedBytes: 32 * MiB })
    const sizeBytes = 32 * MiB
    const large = await announcer(kit, sizeBytes)
    const honest = await kit.connect()
    honest.send(echoOf('honest'))
    await kit.pass()
    for (let sent = 10; sent + MIN_PROGRESS_BYTES <= sizeBytes; sent += MIN_PROGRESS_BYTES) {
      large.socket.write(Buffer.alloc(MIN_PROGRESS_BYTES))
      while (large.socket.writableLength > 0) await kit.pass()
      await new Promise((resolve) => setTimeout(resolve, 20))
      await kit.clock.advance(LOOK_EVERY_MS)
    }
    expect(kit.reasons('warn')).toEqual([])
    large.close()
    expect((await honest.response(echo, 1)).body.name).toBe('honest')
  })
})

describe('who does not read what it asked for', () => {
  it('goes for others who wait for the room', async () => {
    await using kit = await Kit.open({ maxBufferedBytes: 8 * MiB })
    const deaf = await kit.connect()
    deaf.socket.pause()
    // More than the system takes between two sockets.
    deaf.send(echoOf('deaf', { answerBytes: 20 * MiB }))
    await kit.until(() => kit.shared.buffered.bytes > 8 * MiB)
    const honest = await kit.connect()
    honest.send(echoOf('honest'))
    await kit.pass()
    expect(kit.names).toEqual(['deaf'])
    // The first look finds that the system has taken something.
    await kit.clock.advance(LOOK_EVERY_MS)
    await kit.clock.advance(LOOK_EVERY_MS)
    expect((await honest.response(echo, 1)).body.name).toBe('honest')
    expect(kit.reasons('warn')).toEqual([READS_NOT])
  })
})

describe('requests that have come whole', () => {
  it('are not answered while responses alone take all the room', async () => {
    const later = new Later()
    await using kit = await Kit.open({
      maxBufferedBytes: MiB,
      answer: (request, call) =>
        request.name === 'large'
          ? later.answer(request, call)
          : { name: request.name, data: Buffer.alloc(0) },
    })
    const deaf = await kit.connect()
    deaf.send(echoOf('large'))
    const honest = await kit.connect()
    const request = echoOf('honest')
    // Admitted while there is room, and whole only afterwards.
    honest.send(request.subarray(0, request.length - 1))
    await kit.until(() => kit.started.length === 1 && kit.shared.buffered.bytes > request.length)
    deaf.socket.pause()
    later.finish('large', new Uint8Array(12 * MiB))
    await kit.pass()
    honest.send(request.subarray(request.length - 1))
    await kit.pass()
    expect(kit.names).toEqual(['large'])
    deaf.socket.resume()
    expect((await honest.response(echo, 1)).body.name).toBe('honest')
  })
})
