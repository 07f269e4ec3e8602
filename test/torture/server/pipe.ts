/**
 * A connection without a socket: what is sent is there at once, and nothing of the system's is between. The client's end
 * counts what it has asked and what has come back.
 */
import { Duplex } from 'node:stream'

const LENGTH_BYTES = 4

/** The server's end. */
export class Pipe extends Duplex {
  readonly #onBytes: (bytes: Uint8Array) => void

  constructor(onBytes: (bytes: Uint8Array) => void) {
    super()
    this.#onBytes = onBytes
  }

  override _read(): void {}

  override _write(bytes: Uint8Array, _encoding: string, done: (error?: Error | null) => void): void {
    this.#onBytes(bytes)
    done()
  }
}

/** The client's. */
export class PipeClient {
  readonly server: Pipe = new Pipe((bytes) => this.#take(bytes))
  sent = 0
  received = 0
  #bytes: Buffer = Buffer.alloc(0)
  readonly #onFrame: (frame: Uint8Array) => void

  constructor(onFrame: (frame: Uint8Array) => void) {
    this.#onFrame = onFrame
  }

  get closed(): boolean {
    return this.server.destroyed
  }

  get waiting(): number {
    return this.sent - this.received
  }

  send(frame: Uint8Array): void {
    if (this.closed) return
    this.sent++
    // What a socket hands over is the reader's, who may free it.
    this.server.push(Buffer.from(frame))
  }

  #take(bytes: Uint8Array): void {
    this.#bytes = this.#bytes.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#bytes, bytes])
    for (;;) {
      if (this.#bytes.length < LENGTH_BYTES) return
      const end = LENGTH_BYTES + this.#bytes.readInt32BE(0)
      if (this.#bytes.length < end) return
      const frame = this.#bytes.subarray(LENGTH_BYTES, end)
      this.#bytes = this.#bytes.subarray(end)
      this.received++
      this.#onFrame(frame)
    }
  }
}
