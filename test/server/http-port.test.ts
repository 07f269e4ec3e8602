/** A port for pages: who is answered, and pages that come in pieces. */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { HttpPort, type Page, type Pages, plain } from '../../src/server/http-port.ts'
import { openMetrics } from '../../src/server/metrics-server.ts'

const HOST = '127.0.0.1'
const PIECE = 'x'.repeat(1 << 20)
/** More than what sockets on both sides take without being read. */
const PIECES = 32

const open = (pages: Pages): Promise<HttpPort> => HttpPort.open({ host: HOST, port: 0 }, pages)

async function asked(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url), 'response')) as [IncomingMessage]
  return response
}

/** Everything that comes for raw bytes. */
async function raw(port: number, bytes: string): Promise<string> {
  const socket = connect({ host: HOST, port })
  socket.end(bytes)
  return textOf(socket)
}

const inPieces = (text: Page['text']): Page => ({ status: 200, type: 'text/plain', text })

describe('a port for pages', () => {
  it('has an URL for people, with an IPv6 address in brackets', async () => {
    const port = await HttpPort.open({ host: '::1', port: 0 }, () => plain(200, 'here'))
    expect(port.url).toBe(`http://[::1]:${port.address.port}`)
    expect(await textOf(await asked(port.url))).toBe('here\n')
    await port.close()
  })

  it('answers nobody who does not say whom he calls', async () => {
    const port = await open(() => plain(200, 'here'))
    expect(await raw(port.address.port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 421 /)
    const named = await raw(port.address.port, `GET / HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`)
    expect(named).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nhere\n$/)
    await port.close()
  })

  it('says why clients are not to be sent here', async () => {
    const port = await openMetrics(
      { host: HOST, port: 0 },
      { metrics: () => '', unready: () => 'the disk is full' },
    )
    const response = await asked(`${port.url}/readyz`)
    expect([response.statusCode, await textOf(response)]).toEqual([503, 'the disk is full\n'])
    await port.close()
  })
})

describe('a page in pieces', () => {
  it('waits for a slow reader, who gets all of it', async () => {
    let made = 0
    const port = await open(() =>
      inPieces(async function* () {
        for (; made < PIECES; made++) yield PIECE
      }),
    )
    const response = await asked(port.url)
    response.pause()
    // It makes no more than what the sockets take.
    for (let before = -1; before !== made; ) {
      before = made
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(made).toBeLessThan(PIECES)
    expect((await textOf(response)).length).toBe(PIECES * PIECE.length)
    await port.close()
  })

  it('ends where its reader goes away, also while it waits for him', async () => {
    let ended = () => {}
    const end = new Promise<void>((resolve) => {
      ended = resolve
    })
    const port = await open(() =>
      inPieces(async function* () {
        try {
          for (;;) yield PIECE
        } finally {
          ended()
        }
      }),
    )
    const response = await asked(port.url)
    response.destroy()
    await end
    await port.close()
  })
})
