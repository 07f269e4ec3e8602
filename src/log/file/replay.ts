/** Brings one log to where the journal ends: batches to its segments, in large pieces, and what they mean to its state. */
import { assert } from '../../model/errors.ts'
import { decodeMarker } from '../format/control.ts'
import { IN_PROCESS } from '../format/layout.ts'
import type { BatchScan } from '../format/scan.ts'
import type { RecoveredLog } from './recovery.ts'

const PIECE_BYTES = 1024 * 1024

export class Replay {
  readonly #log: RecoveredLog
  readonly #scan: BatchScan
  #pieces: Uint8Array[] = []
  #sizeBytes = 0
  /** Offset of the first batch of the pieces. */
  #base = 0

  constructor(log: RecoveredLog, scan: BatchScan) {
    this.#log = log
    this.#scan = scan
  }

  start(offset: number): void {
    this.#log.start = Math.max(this.#log.start, offset)
  }

  async batch(bytes: Uint8Array): Promise<void> {
    const log = this.#log
    const scan = this.#scan.start(bytes)
    assert(scan.next() && scan.base === log.end, `a batch at ${scan.base} follows ${log.end}`)
    this.#note(bytes)
    if (this.#pieces.length === 0) this.#base = scan.base
    log.end = scan.last + 1
    this.#pieces.push(bytes)
    this.#sizeBytes += bytes.length
    if (this.#sizeBytes >= PIECE_BYTES) await this.#write()
  }

  async finish(): Promise<void> {
    await this.#write()
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
      const marker = decodeMarker(bytes, 0)
      if (marker !== null) state.marker(id, epoch, marker.commit, base, maxTimestamp)
      return
    }
    const { baseSequence: sequence, transactional } = this.#scan
    state.appended({ id, epoch, sequence, transactional }, base, last, maxTimestamp)
  }

  async #write(): Promise<void> {
    if (this.#pieces.length === 0) return
    const pieces = this.#pieces
    this.#pieces = []
    this.#sizeBytes = 0
    await this.#log.segments.append(pieces, { base: this.#base, next: this.#log.end })
  }
}
