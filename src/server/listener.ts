/**
 * A port that takes connections, by TLS or not, and what the system says when it cannot.
 *
 *   system ─► admit ─► ( TLS handshake ) ─► accept
 *
 * A connection is admitted, and counts, before its handshake; who does not come to the end of that is gone within
 * seconds. Those that came before `start` wait for it.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket, TlsOptions } from 'node:tls'
import { messageOf, OdradekError } from '../model/errors.ts'
import type { Address } from './cluster.ts'
import { AUTHENTICATION_DEADLINE_MS } from './limits.ts'
import type { TlsSettings } from './tls-options.ts'

const V4_MAPPED = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i
const SOCKETS = { noDelay: true, keepAlive: true } as const
const PLAINTEXT: ReadonlySet<string> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_HTTPS_PROXY_REQUEST',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_RECORD_LAYER_FAILURE',
])

export interface Visitors {
  /** Whether a connection may come in at all; one that may not is closed. */
  admit(socket: Socket): boolean
  /** Bytes of Kafka's protocol can be exchanged. */
  accept(socket: Socket): void
  /** It did not come to that, for this reason; `gone`: it went away without a word. */
  failed(host: string, reason: string, gone: boolean): void
  /** Connections that the system could not hand over. */
  onError(error: Error): void
}

export class Listener {
  /** Where it listens, with the port that the system chose. */
  readonly address: Address
  readonly #server: Server
  readonly #secure: boolean
  #visitors: Visitors | undefined
  /** Came before `start`. */
  readonly #early: Socket[] = []
  readonly #earlySecured: Socket[] = []

  /** Port 0: a free one. @throws OdradekError LISTEN_ERROR */
  static async open(address: Address, tls?: TlsSettings): Promise<Listener> {
    const server = tls === undefined ? plainServer() : await tlsServer(tls)
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(listenError(address, error)))
      server.listen({ host: address.host, port: address.port, exclusive: true }, resolve)
    })
    return new Listener(address.host, server, tls !== undefined)
  }

  private constructor(host: string, server: Server, secure: boolean) {
    const bound = server.address()
    this.address = { host, port: typeof bound === 'object' && bound !== null ? bound.port : 0 }
    this.#server = server
    this.#secure = secure
    server.on('connection', (socket: Socket) => this.#onConnection(socket))
    server.on('error', (error) => this.#visitors?.onError(error))
    if (!secure) return
    server.on('secureConnection', (socket: TLSSocket) => {
      if (this.#visitors === undefined) this.#hold(socket, this.#earlySecured)
      else this.#visitors.accept(socket)
    })
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
      const gone = error.code === 'ECONNRESET' && !socket.authorizationError
      this.#visitors?.failed(hostOf(socket), handshakeError(error, socket), gone)
      socket.destroy()
    })
  }

  #onConnection(socket: Socket): void {
    if (this.#visitors === undefined) this.#hold(socket, this.#early)
    else if (!this.#visitors.admit(socket)) socket.destroy()
    else if (!this.#secure) this.#visitors.accept(socket)
  }

  #hold(socket: Socket, among: Socket[]): void {
    // Without a listener, an error would end the process.
    socket.on('error', () => socket.destroy())
    among.push(socket)
  }

  start(visitors: Visitors): void {
    this.#visitors = visitors
    for (const socket of this.#early.splice(0)) if (!socket.destroyed) this.#onConnection(socket)
    for (const socket of this.#earlySecured.splice(0)) if (!socket.destroyed) visitors.accept(socket)
  }

  /** Takes no more; resolves when all connections have ended. */
  close(): Promise<void> {
    for (const socket of this.#early.splice(0)) socket.destroy()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }
}

/** Half open: what a client has asked for is answered also when it says that it sends no more. */
function plainServer(): Server {
  return createServer({ ...SOCKETS, allowHalfOpen: true })
}

/** In TLS it never is, or who leaves in the middle of a handshake would stay until its deadline. */
async function tlsServer(tls: TlsSettings): Promise<Server> {
  const { createServer } = await import('node:tls')
  return createServer({
    ...SOCKETS,
    ...(tls as TlsOptions),
    rejectUnauthorized: tls.requestCert,
    handshakeTimeout: AUTHENTICATION_DEADLINE_MS,
  })
}

/** The address of who is at the other end, in one form for IPv4. */
export function hostOf(socket: Socket): string {
  return (socket.remoteAddress ?? 'unknown').replace(V4_MAPPED, '')
}

function handshakeError(error: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string {
  if (PLAINTEXT.has(error.code ?? '')) {
    return 'this looks like a plaintext client on a TLS port: the listener has TLS on, the client has not'
  }
  // Node knows it as null, too.
  if (authorizationError) return `its certificate is not taken: ${String(authorizationError)}`
  return messageOf(error)
}

/** What the system says, and what to do about it. */
export function listenError({ host, port }: Address, error: NodeJS.ErrnoException): OdradekError {
  const cannot = `cannot listen on port ${port} of ${host}`
  const because: Readonly<Record<string, string>> = {
    EADDRINUSE: 'another program has it; choose another port, or 0 for a free one',
    EACCES: 'this process may not; ports below 1,024 need a permission',
    EADDRNOTAVAIL: 'that is no address of this machine',
    ENOTFOUND: 'there is no host of that name',
    EAI_AGAIN: 'that name cannot be looked up now',
  }
  const why = because[error.code ?? ''] ?? error.message
  return new OdradekError('LISTEN_ERROR', `${cannot}: ${why}`, { cause: error })
}
