/**
 * A client that sends what a test says, byte by byte if it must be, and shows every frame that comes back. It knows
 * nothing of order or versions: those are what is tested.
 */
import { connect, type Socket } from 'node:net'
import {
  type Api,
  type RequestInputOf,
  type ResponseOf,
  readResponse,
  writeRequest,
} from '../../src/wire/api.ts'

export interface Reach {
  readonly host: string
  readonly port: number
}

/** A whole request, as bytes. */
export function requestOf<A extends Api>(
  api: A,
  version: number,
  body: RequestInputOf<A>,
  correlationId = 1,
  clientId: string | null = 'test',
): Buffer {
  return Buffer.concat(writeRequest(api, version, { correlationId, clientId }, body as never))
}

export class WireClient {
  readonly socket: Socket
  readonly #frames: Buffer[] = []
  #bytes: Buffer = Buffer.alloc(0)
  readonly #waiting: (() => void)[] = []
  #ended = false
  /** Resolves when the server is gone, with how many bytes of an unfinished frame are left. */
  readonly closed: Promise<number>

  static async connect({ host, port }: Reach): Promise<WireClient> {
    const socket = connect({ host, port, noDelay: true, allowHalfOpen: true })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new WireClient(socket)
  }

  constructor(socket: Socket) {
    this.socket = socket
    // A server that closes while we write resets the connection, as it may.
    socket.on('error', () => this.#end())
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    this.closed = new Promise((resolve) => {
      const end = (): void => {
        this.#end()
        socket.destroy()
        resolve(this.#bytes.length)
      }
      socket.on('end', end)
      socket.on('close', end)
    })
  }

  send(...bytes: Uint8Array[]): void {
    this.socket.write(Buffer.concat(bytes))
  }

  /** The next frame, without its length; undefined when the server closed. */
  async frame(): Promise<Buffer | undefined> {
    while (this.#frames.length === 0) {
      if (this.#ended) return undefined
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return this.#frames.shift()
  }

  /** Frames that are here and were not asked for. */
  get unread(): number {
    return this.#frames.length
  }

  async response<A extends Api>(
    api: A,
    version: number,
  ): Promise<{ correlationId: number; body: ResponseOf<A> }> {
    const frame = await this.frame()
    if (frame === undefined) throw new Error('the server closed the connection')
    return readResponse(api, version, frame) as { correlationId: number; body: ResponseOf<A> }
  }

  async ask<A extends Api>(api: A, version: number, body: RequestInputOf<A>): Promise<ResponseOf<A>> {
    this.send(requestOf(api, version, body))
    return (await this.response(api, version)).body
  }

  close(): void {
    this.socket.destroy()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #take(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    while (this.#bytes.length >= 4 && this.#bytes.length >= 4 + this.#bytes.readInt32BE(0)) {
      const end = 4 + this.#bytes.readInt32BE(0)
      this.#frames.push(this.#bytes.subarray(4, end))
      this.#bytes = this.#bytes.subarray(end)
    }
    this.#wake()
  }

  #end(): void {
    this.#ended = true
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
