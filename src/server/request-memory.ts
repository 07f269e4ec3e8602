/**
 * The memory that requests come in: large ones are put together in buffers that are used again, and the chunks that sockets
 * hand over are freed as soon as nobody looks at them. The garbage collector would free them too, but only with all the
 * rest: it begins to look for garbage whenever some tens of megabytes were read, and takes up to half of the time that
 * it takes to receive them.
 *
 *   chunk ─► copied into a buffer, or in a log by its views ─► drop: detached, and its bytes free at once
 */
import { BufferPool } from '../log/format/buffer-pool.ts'
import type { FrameMemory } from '../wire/frames.ts'
import { MAX_FREE_REQUEST_BYTES } from './limits.ts'

/** Freeing less costs more than it brings. */
const MIN_DROPPED_BYTES = 16_384

/** Since Node 22; the types are of Node 20. */
interface Transferable {
  transfer?(newByteLength: number): ArrayBuffer
}

export class RequestMemory extends BufferPool implements FrameMemory {
  #drain: InstanceType<typeof MessagePort> | undefined

  constructor() {
    super(MAX_FREE_REQUEST_BYTES)
  }

  /** Its views are empty afterwards, all of them. */
  drop({ buffer, length }: Uint8Array): void {
    // A part of something else is not ours.
    if (length < MIN_DROPPED_BYTES || length !== buffer.byteLength) return
    const bytes = buffer as ArrayBuffer & Transferable
    if (bytes.transfer === undefined) this.#port.postMessage(null, [bytes])
    else bytes.transfer(0)
  }

  /** What a port is given whose other end is closed is gone: all that Node 20 has for this. */
  get #port(): InstanceType<typeof MessagePort> {
    if (this.#drain === undefined) {
      const { port1, port2 } = new MessageChannel()
      port2.close()
      this.#drain = port1
    }
    return this.#drain
  }
}
