/**
 * What a durable engine stores of a cursor, and when.
 *
 *   offset ──────────── next ────────── reserved
 *   settled below       handed out      stored as "may have been handed out"
 *
 * Before a block of offsets is handed out, the mark at its end is stored. So after a crash every record that
 * a handler may have seen is known to have been started, and one that takes the process down with it
 * still runs out of attempts. What a crash left behind is handed out one by one, each start stored, so that
 * the record to blame is told from its neighbours. At-most-once commits the block itself. Where nothing
 * outlives the process, nothing is stored and everything may be handed out.
 *
 * The next block is asked for while half of this one is left, so that handing out waits for no disk.
 */
import type { Cursor } from './cursor.ts'
import { DEAD, type DeliveryRecord, IN_FLIGHT } from './delivery.ts'
import { type CursorState, Restored, StartRuns } from './restored.ts'

/**
 * Offsets that one stored mark allows to be handed out: the fewest, as a crash makes a start of each; and the most, for
 * readers that use up a block while the mark of the next one is being stored.
 */
const BLOCK = 256
const MAX_BLOCK = 2_048

export class DeliveryMark {
  readonly #cursor: Cursor
  readonly #durable: boolean
  /** Below it, records may be handed out. */
  allowed: number
  #reserved = 0
  #block = BLOCK
  /** A mark that is being stored. */
  #storing: Promise<void> | null = null
  /** The last one was not stored, or not yet. */
  #failed = false
  /** Counts what became of reservations, so that one that was overtaken allows nothing. */
  #turn = 0
  #restored: Restored | null

  constructor(cursor: Cursor, at: number, stored: CursorState | undefined) {
    this.#cursor = cursor
    this.#durable = cursor.reader.ctx.commits.durable && cursor.reader.durable
    this.allowed = this.#durable ? at : Number.POSITIVE_INFINITY
    this.#restored = stored === undefined ? null : new Restored(stored)
  }

  /** Whether nothing was stored and nothing need be: all may be handed out at any time. */
  get isIdle(): boolean {
    return !this.#durable && this.#restored === null
  }

  /** Whether a former process may have had its hands on what comes next. */
  get remembers(): boolean {
    return this.#restored !== null
  }

  /** Deliveries of the record at `offset` that began in former processes. Asked while it `remembers`. */
  startsAt(offset: number): number {
    return (this.#restored as Restored).starts(offset)
  }

  wasSettled(offset: number): boolean {
    if (this.#restored === null) return false
    if (offset < this.#restored.until) return this.#restored.isSettled(offset)
    this.#restored = null
    return false
  }

  /** Whether former processes used up all attempts of the record at `offset`. */
  isExhausted(offset: number): boolean {
    const { attempts } = this.#cursor.reader.settings.retry
    return this.#restored !== null && this.#restored.knownStarts(offset) >= attempts
  }

  /** Whether the next block should be asked for. */
  get runsLow(): boolean {
    return this.allowed - this.#cursor.window.next < this.#block / 2
  }

  /** Whether so many records, or all there are, may be handed out now. What a crash left goes one by one. */
  covers(records: number): boolean {
    const { window, log } = this.#cursor
    const wanted = Math.min(window.next + Math.min(records, this.#block), log.marks.stable)
    return this.allowed >= wanted || wanted <= window.next || this.#restored !== null
  }

  /** Stores the mark for what comes next, if that is not under way. */
  reserve(): Promise<void> {
    this.#storing ??= this.#store(this.#blockEnd())
    return this.#storing
  }

  /**
   * Stores the mark for the next block while there is one to be handed out, so that nobody has to wait for it. Where that
   * fails, whoever needs the next block tries again, and tells.
   */
  ahead(): void {
    if (this.#storing !== null || this.#failed || this.#restored !== null) return
    const { allowed } = this
    const end = this.#blockEnd()
    if (end <= allowed) return
    this.#storing = this.#store(end)
    const { window } = this.#cursor
    this.#storing.then(
      () => this.#adapt(allowed - window.next),
      () => undefined,
    )
  }

  async #store(end: number): Promise<void> {
    const turn = ++this.#turn
    this.#reserved = end
    this.#failed = true
    try {
      await this.#cursor.reader.ctx.commits.store([this.#cursor])
      if (this.#turn === turn) this.allowed = end
      this.#failed = false
    } finally {
      if (this.#turn === turn) this.#storing = null
    }
  }

  /** By what is left of a block when the mark of the next one is stored. */
  #adapt(left: number): void {
    if (left <= 0) this.#block = Math.min(this.#block * 2, MAX_BLOCK)
    else if (left > this.#block / 4) this.#block = Math.max(this.#block / 2, BLOCK)
  }

  #blockEnd(): number {
    const { window, log, reader } = this.#cursor
    const { stable } = log.marks
    const { next } = window
    const old = this.#restored
    if (old === null || next >= old.until) {
      // Also what is not there yet, so that nobody waits at the tail; but what is committed as a block is never seen again.
      return reader.atMostOnce ? Math.min(next + this.#block, stable) : next + this.#block
    }
    let last = next
    while (old.isSettled(last)) last++
    return Math.min(last + 1, stable)
  }

  /** Nothing is handed out any more until a mark is stored again: what was only reserved was never started. */
  release(): void {
    if (this.#durable) this.allowed = this.#cursor.window.next
    this.#turn++
    this.#storing = null
    this.#reserved = 0
  }

  reset(at: number): void {
    this.allowed = this.#durable ? at : Number.POSITIVE_INFINITY
    this.#turn++
    this.#storing = null
    this.#reserved = 0
    this.#restored = null
  }

  /** Enough to go on after a crash without losing a settle or an attempt. */
  state(): CursorState {
    const { window, reader } = this.#cursor
    if (reader.atMostOnce) {
      const offset = Math.max(window.next, this.#reserved)
      return { offset, settled: [], handed: offset, starts: [] }
    }
    const old = this.#restored
    const starts = new StartRuns()
    for (const record of window) starts.add(record.offset, startsOf(record))
    for (let at = window.next; old !== null && at < old.until; at++) {
      if (!old.isSettled(at)) starts.add(at, old.starts(at) + (at < this.#reserved ? 1 : 0))
    }
    return {
      offset: window.committed,
      settled: [...window.settledRuns(), ...(old?.settledFrom(window.next) ?? [])],
      handed: Math.max(window.next, this.#reserved, old?.until ?? 0),
      starts: starts.runs,
    }
  }
}

/** What waits for its next delivery has not begun it. */
function startsOf(record: DeliveryRecord): number {
  return record.state === IN_FLIGHT || record.state === DEAD ? record.attempt : record.attempt - 1
}
