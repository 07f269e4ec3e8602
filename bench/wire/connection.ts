/**
 * A connection of the load generator: frames out, frames in, as little as can be in between. Bytes are read into one
 * buffer of its own, and a frame is shown where it was put together; it is gone when the callback returns.
 *
 *   socket ─► 256 KiB ─► frame, grown to the largest there was ─► callback
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Api, RequestInputOf, ResponseOf } from '../../dist/wire/api.js'
import { readResponse, writeRequest } from './built.ts'

const READ_BYTES = 262_144
const CLIENT_ID = 'bench'

/** The frame without its length; it is only there during the call. */
export type OnFrame = (frame: Uint8Array) => void

export class Connection {
  /** How many of this process are open. */
  static count = 0
  readonly #socket: Socket
  #frame = Buffer.allocUnsafe(65_536)
  readonly #length = Buffer.alloc(4)
  #lengthAt = 0
  #sizeBytes = 0
  #at = 0
  #onFrame: OnFrame = () => {}
  #failed: (error: Error) => void = () => {}
  #closed = false
  #correlationId = 0

  private constructor(port: number) {
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback: (count, buffer) => {
          this.#take(buffer as Buffer, count)
          return true
        },
      },
    })
    this.#socket.on('error', (error) => this.#failed(error))
    this.#socket.on('close', () => {
      this.#closed = true
      this.#failed(new Error('the broker closed the connection'))
    })
  }

  /** Throws where nobody listens. */
  static async open(port: number): Promise<Connection> {
    const connection = new Connection(port)
    await once(connection.#socket, 'connect')
    Connection.count++
    connection.#socket.once('close', () => Connection.count--)
    return connection
  }

  /** From now on frames go here; the promise rejects when the connection is lost. */
  listen(onFrame: OnFrame): Promise<never> {
    this.#onFrame = onFrame
    return new Promise((_, reject) => {
      this.#failed = reject
      if (this.#closed) reject(new Error('the broker closed the connection'))
    })
  }

  write(frame: Uint8Array): void {
    this.#socket.write(frame)
  }

  /** One request and its answer, while nothing else goes on. */
  async ask<A extends Api>(api: A, version: number, body: RequestInputOf<A>): Promise<ResponseOf<A>> {
    const correlationId = ++this.#correlationId
    let lost: Promise<never> | undefined
    const answered = new Promise<ResponseOf<A>>((resolve, reject) => {
      lost = this.listen((frame) => {
        try {
          const answer = readResponse(api, version, Uint8Array.from(frame))
          if (answer.correlationId !== correlationId) throw new Error(`an answer to another request`)
          resolve(answer.body as ResponseOf<A>)
        } catch (error) {
          reject(error)
        }
      })
    })
    this.write(frameOf(api, version, correlationId, body))
    return Promise.race([answered, lost as Promise<never>])
  }

  close(): void {
    this.#failed = () => {}
    this.#socket.destroy()
  }

  #take(chunk: Buffer, count: number): void {
    let from = 0
    while (from < count) {
      if (this.#lengthAt < 4) {
        this.#length[this.#lengthAt++] = chunk[from++] as number
        if (this.#lengthAt < 4) continue
        this.#sizeBytes = this.#length.readInt32BE(0)
        this.#at = 0
        if (this.#sizeBytes > this.#frame.length) this.#frame = Buffer.allocUnsafe(this.#sizeBytes * 2)
      }
      const part = Math.min(this.#sizeBytes - this.#at, count - from)
      chunk.copy(this.#frame, this.#at, from, from + part)
      this.#at += part
      from += part
      if (this.#at < this.#sizeBytes) continue
      this.#lengthAt = 0
      this.#onFrame(this.#frame.subarray(0, this.#sizeBytes))
    }
  }
}

/** A whole frame in one piece. */
export function frameOf<A extends Api>(
  api: A,
  version: number,
  correlationId: number,
  body: RequestInputOf<A>,
): Buffer {
  return Buffer.concat(writeRequest(api, version, { correlationId, clientId: CLIENT_ID }, body as never))
}

/** Gives a frame that was made before another correlation id. */
export function setCorrelation(frame: Buffer, correlationId: number): void {
  frame.writeInt32BE(correlationId, 8)
}
