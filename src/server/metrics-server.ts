/**
 * An HTTP port for machines that watch: `/metrics` for Prometheus, `/healthz` (the process answers) and `/readyz`
 * (clients are taken, and what they send can be stored). GET and HEAD, these paths, nothing else. A page on this machine
 * alone answers only who calls it by a name of this machine, so that no web page gets at it by a name of its own.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isLoopback } from './addresses.ts'
import type { Address } from './cluster.ts'
import { CONTENT_TYPE } from './exposition.ts'
import { listenError } from './listener.ts'

const MAX_CONNECTIONS = 64
const TIMEOUT_MS = 10_000
const TEXT = 'text/plain; charset=utf-8'

export interface Watched {
  metrics(): string
  /** Why clients are not to be sent here; undefined where they are. */
  unready(): string | undefined
}

interface Page {
  readonly status: number
  readonly type: string
  readonly text: string
}

export class MetricsServer {
  readonly address: Address
  readonly #server: Server

  /** Port 0: a free one. @throws OdradekError LISTEN_ERROR */
  static async open(address: Address, watched: Watched): Promise<MetricsServer> {
    const local = isLoopback(address.host)
    const server = createServer((request, response) => answer(request, response, watched, local))
    server.maxConnections = MAX_CONNECTIONS
    server.headersTimeout = TIMEOUT_MS
    server.requestTimeout = TIMEOUT_MS
    server.timeout = TIMEOUT_MS
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(listenError(address, error)))
      server.listen({ host: address.host, port: address.port, exclusive: true }, resolve)
    })
    return new MetricsServer(address.host, server)
  }

  private constructor(host: string, server: Server) {
    const bound = server.address()
    this.address = { host, port: typeof bound === 'object' && bound !== null ? bound.port : 0 }
    this.#server = server
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }
}

function answer(request: IncomingMessage, response: ServerResponse, watched: Watched, local: boolean): void {
  const { status, type, text } = pageOf(request, watched, local)
  const body = Buffer.from(text)
  response.writeHead(status, {
    'content-type': type,
    'content-length': body.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function pageOf({ method, url = '', headers }: IncomingMessage, watched: Watched, local: boolean): Page {
  if (local && !isLoopback(hostIn(headers.host ?? ''))) return plain(421, 'call it by a name of this machine')
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'GET and HEAD only')
  const [path] = url.split('?')
  if (path === '/metrics') return { status: 200, type: CONTENT_TYPE, text: watched.metrics() }
  if (path === '/healthz') return plain(200, 'ok')
  if (path !== '/readyz') return plain(404, 'there are /metrics, /healthz and /readyz')
  const unready = watched.unready()
  return unready === undefined ? plain(200, 'ok') : plain(503, unready)
}

function plain(status: number, text: string): Page {
  return { status, type: TEXT, text: `${text}\n` }
}

/** Without the port, and an IPv6 address without its brackets. */
function hostIn(header: string): string {
  return header.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
}
