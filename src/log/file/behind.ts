/**
 * What of a log is written behind the journal: how far its segments are, and what a checkpoint waits for.
 *
 *   offsets   start ─────── written ─────── fence ──── high
 *             │ in segments │ in memory, and │ of a checkpoint, which
 *             │             │ in the journal │ wants the segments as they are when they end there
 *
 * One write at a time: the writer calls `write`, and at the end of the engine whoever closes it.
 */
import type { Marks } from '../contract.ts'
import type { StoredSegment } from './checkpoint.ts'
import type { Committer } from './committer.ts'
import type { Resident } from './resident.ts'
import type { Segments } from './segments.ts'

interface Fence {
  readonly end: number
  readonly reached: (segments: readonly StoredSegment[]) => void
}

interface Change {
  readonly make: () => void
  readonly ended: (made: boolean) => void
}

export class Behind {
  readonly #segments: Segments
  readonly #resident: Resident
  readonly #marks: Readonly<Marks>
  readonly #committer: Committer
  /** Up to here it is in segments. */
  #written: number
  /** Where the log starts, as far as that is committed. */
  #start: number
  #fence: Fence | null = null
  /** Waits for the moment at which all is written. */
  #change: Change | null = null
  #over = false

  constructor(segments: Segments, resident: Resident, marks: Readonly<Marks>, committer: Committer) {
    this.#segments = segments
    this.#resident = resident
    this.#marks = marks
    this.#committer = committer
    this.#written = segments.next
    this.#start = marks.start
  }

  get written(): number {
    return this.#written
  }

  /** The start that is committed: no crash of the process takes it back. */
  get start(): number {
    return this.#start
  }

  set start(start: number) {
    this.#start = start
  }

  /** Somebody waits for what is to be written, or for the disk space that there would be. */
  get isAwaited(): boolean {
    return this.#fence !== null || this.#hasGarbage
  }

  /** Whether a whole segment is below the start. */
  get #hasGarbage(): boolean {
    const [oldest] = this.#segments.list
    return oldest?.sealed === true && oldest.next <= this.#start
  }

  /** Writes what is committed to segments, in pieces, and gives back segments below the start. */
  async write(): Promise<void> {
    while (!this.#over) {
      const fence = this.#fence
      const until = Math.min(this.#marks.high, fence?.end ?? Number.POSITIVE_INFINITY)
      if (this.#written < until) await this.#writePiece(until)
      else if (fence !== null && this.#written >= fence.end) this.#reach(fence)
      else break
    }
    if (this.#fence === null) this.dropChange(true)
    await this.#free()
  }

  /**
   * Makes a change of segments at once when everything is in them that is committed, so that nothing is pinned, and nobody
   * waits at a fence, so that a checkpoint has all of a log from before or from after. Answers whether it was made. One
   * at a time.
   */
  whenWritten(make: () => void): Promise<boolean> {
    return new Promise((ended) => {
      this.#change = { make, ended }
    })
  }

  /** Whoever waits to make a change waits no more. */
  dropChange(make: boolean = false): void {
    const change = this.#change
    this.#change = null
    if (make) change?.make()
    change?.ended(make)
  }

  async #writePiece(until: number): Promise<void> {
    const piece = this.#resident.unwritten(this.#written, until)
    await this.#segments.append(piece.pieces, piece)
    this.#written = piece.next
    this.#resident.written(piece.next)
  }

  #reach(fence: Fence): void {
    this.#fence = null
    fence.reached(this.#segments.stored())
  }

  /** Files go for good. So the start behind them must not come back, not even when the power fails. */
  async #free(): Promise<void> {
    const start = this.#start
    if (this.#over || !this.#hasGarbage) return
    await this.#committer.settle()
    await this.#segments.removeBelow(start)
  }

  /** The segments as they are when everything up to `end` is in them, and nothing else. One at a time. */
  fence(end: number): Promise<readonly StoredSegment[]> {
    return new Promise((reached) => {
      this.#fence = { end, reached }
    })
  }

  /** Whoever waits at the fence waits no more; what it is told is not to be used. */
  open(): void {
    this.#fence?.reached([])
    this.#fence = null
  }

  /** Nothing more is written: the log is gone. */
  end(): void {
    this.#over = true
    this.open()
    this.dropChange()
  }

  get isOver(): boolean {
    return this.#over
  }
}
