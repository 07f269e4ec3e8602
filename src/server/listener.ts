/** A port that takes connections, and what the system says when it cannot. */
import { createServer, type Server, type Socket } from 'node:net'
import { OdradekError } from '../model/errors.ts'
import type { Address } from './cluster.ts'

const V4_MAPPED = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i

export class Listener {
  /** Where it listens, with the port that the system chose. */
  readonly address: Address
  readonly #server: Server
  /** Came before `start`. */
  readonly #early: Socket[] = []
  #onError: (error: Error) => void = () => {}

  /** Port 0: a free one. @throws OdradekError LISTEN_ERROR */
  static async open(address: Address): Promise<Listener> {
    // Half open: what a client has asked for is answered also when it says that it sends no more.
    const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true })
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(listenError(address, error)))
      server.listen({ host: address.host, port: address.port, exclusive: true }, resolve)
    })
    return new Listener(address.host, server)
  }

  private constructor(host: string, server: Server) {
    const bound = server.address()
    this.address = { host, port: typeof bound === 'object' && bound !== null ? bound.port : 0 }
    this.#server = server
    server.on('connection', this.#hold)
    server.on('error', (error) => this.#onError(error))
  }

  readonly #hold = (socket: Socket): void => {
    // Without a listener, an error would end the process.
    socket.on('error', () => socket.destroy())
    this.#early.push(socket)
  }

  /** `accept` gets every connection; `onError` hears of those that the system could not hand over. */
  start(accept: (socket: Socket) => void, onError: (error: Error) => void): void {
    this.#onError = onError
    this.#server.off('connection', this.#hold)
    this.#server.on('connection', accept)
    for (const socket of this.#early.splice(0)) accept(socket)
  }

  /** Takes no more; resolves when all connections have ended. */
  close(): Promise<void> {
    for (const socket of this.#early.splice(0)) socket.destroy()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }
}

/** The address of who is at the other end, in one form for IPv4. */
export function hostOf(socket: Socket): string {
  return (socket.remoteAddress ?? 'unknown').replace(V4_MAPPED, '')
}

function listenError({ host, port }: Address, error: NodeJS.ErrnoException): OdradekError {
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
