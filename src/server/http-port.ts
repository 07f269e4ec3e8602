/**
 * An HTTP port beside Kafka's, for machines and tests: small pages, few connections, no browser. A port of this machine
 * alone answers only who calls it by a name of this machine, so that no web page gets at it by a name of its own.
 *
 *   request ─► Host ─► its page ─► head, text        a text, or pieces of one as they come to be
 */
import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { isLoopback } from './addresses.ts'
import type { Address } from './cluster.ts'
import { listenError } from './listener.ts'

const MAX_CONNECTIONS = 64
const TIMEOUT_MS = 10_000

export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** Undefined where there are more bytes than that. */
  body(maxBytes: number): Promise<string | undefined>
}

export interface Page {
  readonly status: number
  readonly type: string
  /** Pieces end when the signal aborts, since nobody reads them any more. */
  readonly text: string | ((signal: AbortSignal) => AsyncIterable<string>)
  /** Methods, where another one was asked for. */
  readonly allow?: string
}

/** What is answered; it must not throw. */
export type Pages = (request: HttpRequest) => Page | Promise<Page>

interface HttpPortOptions {
  /** The page of who calls it by another name. */
  readonly refused?: (status: number, text: string) => Page
  /** How long a connection may be silent; 0 for ever, where pages come in pieces. */
  readonly idleMs?: number
}

export class HttpPort {
  readonly address: Address
  readonly #server: Server

  /** Port 0: a free one. @throws OdradekError LISTEN_ERROR */
  static async open(
    address: Address,
    pages: Pages,
    { refused = plain, idleMs = TIMEOUT_MS }: HttpPortOptions = {},
  ): Promise<HttpPort> {
    const local = isLoopback(address.host)
    // Not imported above: most servers have no such port.
    const { createServer } = await import('node:http')
    const server = createServer((request, response) => {
      // Who goes away while it is answered is not answered.
      const isNamed = !local || isLoopback(hostIn(request.headers.host ?? ''))
      const own = isNamed ? pages : () => refused(421, 'call it by a name of this machine')
      answer(request, response, own).catch(() => response.destroy())
    })
    server.maxConnections = MAX_CONNECTIONS
    server.headersTimeout = TIMEOUT_MS
    server.requestTimeout = TIMEOUT_MS
    server.timeout = idleMs
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(listenError(address, error)))
      server.listen({ host: address.host, port: address.port, exclusive: true }, resolve)
    })
    return new HttpPort(address.host, server)
  }

  private constructor(host: string, server: Server) {
    const bound = server.address()
    this.address = { host, port: typeof bound === 'object' && bound !== null ? bound.port : 0 }
    this.#server = server
  }

  /** For people and programs. */
  get url(): string {
    const { host, port } = this.address
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  /** Pages that are being written end in the middle. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }
}

/** A line that is all there is to say. */
export function plain(status: number, text: string): Page {
  return { status, type: 'text/plain; charset=utf-8', text: `${text}\n` }
}

async function answer(request: IncomingMessage, response: ServerResponse, pages: Pages): Promise<void> {
  const { status, type, text, allow } = await pages(requestOf(request))
  const isWhole = typeof text === 'string'
  response.writeHead(status, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(isWhole ? { 'content-length': Buffer.byteLength(text) } : {}),
    ...(allow === undefined ? {} : { allow }),
    // What was not read of a body would be taken for the next request.
    ...(request.complete ? {} : { connection: 'close' }),
  })
  if (request.method === 'HEAD') response.end()
  else if (isWhole) response.end(text)
  else await write(response, text)
}

async function write(
  response: ServerResponse,
  pieces: (signal: AbortSignal) => AsyncIterable<string>,
): Promise<void> {
  const gone = new AbortController()
  const { signal } = gone
  response.once('close', () => gone.abort())
  response.flushHeaders()
  for await (const piece of pieces(signal)) {
    if (!response.write(piece)) await once(response, 'drain', { signal })
  }
  response.end()
}

function requestOf(request: IncomingMessage): HttpRequest {
  const { method = '', url = '', headers } = request
  const [path = '', query] = url.split('?', 2)
  return {
    method,
    path,
    query: new URLSearchParams(query),
    headers,
    body: async (maxBytes) => {
      const pieces: Buffer[] = []
      let sizeBytes = 0
      for await (const piece of request as AsyncIterable<Buffer>) {
        sizeBytes += piece.length
        if (sizeBytes > maxBytes) return undefined
        pieces.push(piece)
      }
      return Buffer.concat(pieces).toString()
    },
  }
}

/** Without the port, and an IPv6 address without its brackets. */
function hostIn(header: string): string {
  return header.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
}
