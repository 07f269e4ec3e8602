/**
 * What is on its way to a socket, in order. Pieces are handed over as they are, many in one system call, and at most
 * about a mebibyte at a time: so it is known how much is left, and that a reader who is slow still moves.
 *
 *   push ─► │ piece │ piece │ piece │ ──► one write under way ──► socket
 *           └──────────── bytes ────────────────────────────┘
 *                   └ marks: who is told when all up to here is written
 */
import type { Duplex } from 'node:stream'
import { Deque } from '../core/deque.ts'
import { MiB } from '../model/limits.ts'

/** Handed over at once. */
const WRITE_BYTES: number = MiB

const NOBODY: readonly (() => void)[] = []

interface Mark {
  readonly at: number
  readonly sent: readonly (() => void)[]
}

export class Outbox {
  readonly #socket: Duplex
  readonly #onWritten: (sizeBytes: number) => void
  readonly #pieces = new Deque<Uint8Array>()
  readonly #marks = new Deque<Mark>()
  #bytes = 0
  /** All there ever were. */
  #pushedBytes = 0
  #writing = false

  /** `onWritten`: the system took that many bytes. */
  constructor(socket: Duplex, onWritten: (sizeBytes: number) => void) {
    this.#socket = socket
    this.#onWritten = onWritten
  }

  /** Bytes that the system did not take yet. */
  get bytes(): number {
    return this.#bytes
  }

  /** The pieces must not change before they are written; `sent` are called then, or never if the socket fails. */
  push(pieces: readonly Uint8Array[], sent: readonly (() => void)[] = NOBODY): void {
    for (const piece of pieces) {
      this.#pieces.push(piece)
      this.#bytes += piece.length
      this.#pushedBytes += piece.length
    }
    if (sent.length > 0) this.#marks.push({ at: this.#pushedBytes, sent })
  }

  /** Starts a write, if none is under way; goes on by itself until all is written. */
  flush(): void {
    if (this.#writing || this.#pieces.length === 0) return
    this.#writing = true
    const socket = this.#socket
    let sizeBytes = 0
    socket.cork()
    for (;;) {
      const piece = this.#take(WRITE_BYTES - sizeBytes)
      sizeBytes += piece.length
      if (sizeBytes < WRITE_BYTES && this.#pieces.length > 0) {
        socket.write(piece)
        continue
      }
      socket.write(piece, (error) => {
        if (!error) this.#written(sizeBytes)
      })
      break
    }
    socket.uncork()
  }

  /** The first piece, or as much of it as may go. */
  #take(maxBytes: number): Uint8Array {
    const piece = this.#pieces.shift() as Uint8Array
    if (piece.length <= maxBytes) return piece
    this.#pieces.unshift(piece.subarray(maxBytes))
    return piece.subarray(0, maxBytes)
  }

  #written(sizeBytes: number): void {
    this.#writing = false
    this.#bytes -= sizeBytes
    const writtenBytes = this.#pushedBytes - this.#bytes
    for (let mark = this.#marks.peek(); mark !== undefined; mark = this.#marks.peek()) {
      if (mark.at > writtenBytes) break
      this.#marks.shift()
      for (const each of mark.sent) each()
    }
    this.#onWritten(sizeBytes)
    this.flush()
  }
}
