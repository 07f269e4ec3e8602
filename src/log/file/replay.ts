/**
 * Brings one log to where the journal ends: batches to its segments, in large pieces, and what they mean to its state.
 *
 *   buffer   │ small │ small │ small │ small │ ...      copied together: a write of many pieces costs more
 *   pieces   └───────────────┘ large └───────┘          large ones stay where they are
 */
import { assert } from '../../model/errors.ts'
import { decodeMarker } from '../format/control.ts'
import { IN_PROCESS } from '../format/layout.ts'
import type { BatchScan } from '../format/scan.ts'
import type { RecoveredLog } from './recovery.ts'

const KiB = 1024
/** What is written at once. */
const WRITE_BYTES = 1024 * KiB
const LARGE_BYTES = 16 * KiB
const FIRST_BUFFER_BYTES = 4 * KiB
const MAX_BUFFER_BYTES = 256 * KiB

export class Replay {
  readonly #log: RecoveredLog
  readonly #scan: BatchScan
  #pieces: Uint8Array[] = []
  #sizeBytes = 0
  /** Offset of the first batch of the pieces. */
  #base = 0
  #buffer = new Uint8Array(FIRST_BUFFER_BYTES)
  /** Bytes of the buffer from here to `#at` are in no piece yet. */
  #from = 0
  #at = 0

  constructor(log: RecoveredLog, scan: BatchScan) {
    this.#log = log
    this.#scan = scan
  }

  start(offset: number): void {
    this.#log.start = Math.max(this.#log.start, offset)
  }

  /**
   * What `bytes` are from `from` to `end`. Answers whether there is enough now to be written, or something that must be
   * before the bytes change.
   */
  batch(bytes: Uint8Array, from: number, end: number): boolean {
    const log = this.#log
    const scan = this.#scan.start(bytes, from, end)
    assert(scan.next() && scan.base === log.end, `a batch at ${scan.base} follows ${log.end}`)
    this.#note(bytes)
    if (this.#sizeBytes === 0) this.#base = scan.base
    log.end = scan.last + 1
    this.#add(bytes.subarray(from, end))
    return this.#sizeBytes >= WRITE_BYTES || end - from >= LARGE_BYTES
  }

  async finish(): Promise<void> {
    await this.write()
    await this.#log.segments.sync()
    this.#log.state.trim(this.#log.start)
  }

  #note(bytes: Uint8Array): void {
    const { base, last, maxTimestamp, producerId: id, producerEpoch: epoch, control } = this.#scan
    const { state } = this.#log
    if ((this.#scan.attributes & IN_PROCESS) !== 0)
      this.#log.stamped = Math.max(this.#log.stamped, maxTimestamp)
    if (id < 0) return
    if (control) {
      const marker = decodeMarker(bytes, this.#scan.position)
      if (marker !== null) state.marker(id, epoch, marker.commit, base, maxTimestamp)
      return
    }
    const { baseSequence: sequence, transactional } = this.#scan
    state.appended({ id, epoch, sequence, transactional }, base, last, maxTimestamp)
  }

  #add(bytes: Uint8Array): void {
    this.#sizeBytes += bytes.length
    if (bytes.length >= LARGE_BYTES) {
      this.#cut()
      this.#pieces.push(bytes)
      return
    }
    if (this.#at + bytes.length > this.#buffer.length) {
      this.#cut()
      const sizeBytes = Math.min(this.#buffer.length * 2, MAX_BUFFER_BYTES)
      this.#buffer = new Uint8Array(Math.max(sizeBytes, bytes.length))
      this.#from = this.#at = 0
    }
    this.#buffer.set(bytes, this.#at)
    this.#at += bytes.length
  }

  /** Makes a piece of what the buffer holds. */
  #cut(): void {
    if (this.#at > this.#from) this.#pieces.push(this.#buffer.subarray(this.#from, this.#at))
    this.#from = this.#at
  }

  /** Writes what has come together. */
  async write(): Promise<void> {
    if (this.#sizeBytes === 0) return
    this.#cut()
    const pieces = this.#pieces
    this.#pieces = []
    this.#sizeBytes = 0
    await this.#log.segments.append(pieces, { base: this.#base, next: this.#log.end })
    this.#from = this.#at = 0
  }
}
