/**
 * A log as compaction sees it: how far it is compacted, when there is something to be done, and the moment at which a
 * segment takes the place of others.
 *
 *   offsets   start ───────────── until ──────────────── bound ─────── end
 *             │ each key once     │ as it was written    │ open transactions, and the active segment
 *             └──── rewritten as a whole, when what is behind `until` is as much as what is before ────┘
 *
 * All that knows of records changes in one moment: segments, what is in memory of them, sizes, the index of aborted
 * transactions, so that whoever reads sees a log from before or from after it. It is a moment at which everything is
 * written, and no checkpoint is under way (behind.ts).
 */
import type { LogSpec, Marks } from '../contract.ts'
import type { PartitionState } from '../state.ts'
import type { Behind } from './behind.ts'
import type { StoredCompaction } from './checkpoint.ts'
import type { Resident } from './resident.ts'
import type { Room } from './room.ts'
import type { Segment } from './segment.ts'
import type { Segments } from './segments.ts'

const HOUR_MS = 3_600_000

export interface CompactableParts {
  readonly segments: Segments
  readonly resident: Resident
  readonly room: Room
  readonly state: PartitionState
  readonly marks: Readonly<Marks>
  readonly behind: Behind
  /** What is committed is to be written to segments now. */
  readonly hurry: () => void
}

/** One segment for several. */
export interface Replacement {
  readonly sources: readonly [Segment, ...Segment[]]
  readonly by: Segment
  /** What lies below it was left out. */
  readonly start: number
  /** Offsets of abort markers that are gone, with all that they end. */
  readonly gone: ReadonlySet<number>
}

export class Compactable {
  readonly segments: Segments
  readonly state: PartitionState
  readonly #parts: CompactableParts
  /** Milliseconds that a tombstone is kept; null where the log is not compacted. */
  #retentionMs: number | null = null
  #until: number
  #horizon: number
  /** Where a look would have gone to when there was nothing to do last. */
  #looked = -1

  constructor(parts: CompactableParts, stored: StoredCompaction | undefined) {
    this.#parts = parts
    this.segments = parts.segments
    this.state = parts.state
    this.#until = stored?.until ?? 0
    this.#horizon = stored?.horizon ?? Number.POSITIVE_INFINITY
  }

  configure({ cleanup, deleteRetentionMs }: Pick<LogSpec, 'cleanup' | 'deleteRetentionMs'>): void {
    this.#retentionMs = cleanup === 'compact' ? deleteRetentionMs : null
    if (cleanup === 'compact') this.segments.rollEarly(Math.max(deleteRetentionMs, HOUR_MS))
  }

  stored(): { readonly compaction?: StoredCompaction } {
    const [until, horizon] = [this.#until, this.#horizon]
    if (until === 0) return {}
    return { compaction: horizon === Number.POSITIVE_INFINITY ? { until } : { until, horizon } }
  }

  /** Below it each key is there once. */
  get until(): number {
    return this.#until
  }

  /** When the last of the tombstones and markers below `until` may go; Infinity for none. */
  get horizon(): number {
    return this.#retentionMs === null ? Number.POSITIVE_INFINITY : this.#horizon
  }

  /** Where the log begins, as far as that is committed. */
  get start(): number {
    return this.#parts.behind.start
  }

  /** What may be rewritten now. Above lies what a transaction may still take back, or is written to. */
  get sources(): readonly Segment[] {
    return this.#retentionMs === null ? [] : this.segments.sealedBelow(this.#parts.marks.stable)
  }

  /** Whether half of it was written since, or tombstones have had their time. */
  isDue(now: number): boolean {
    if (this.#retentionMs === null) return false
    // Asked after every write: what it depends on changes seldom.
    const look = Math.min(this.#parts.marks.stable, this.segments.list.at(-1)?.base ?? 0)
    if (look === this.#looked && now < this.#horizon) return false
    let [dirtyBytes, allBytes] = [0, 0]
    for (const { next, sizeBytes } of this.sources) {
      allBytes += sizeBytes
      if (next > this.#until) dirtyBytes += sizeBytes
    }
    const isDue = allBytes > 0 && (dirtyBytes * 2 >= allBytes || now >= this.#horizon)
    if (!isDue) this.#looked = look
    return isDue
  }

  /** When what is found now to be deleted may go, in milliseconds since the epoch; undefined for never. */
  horizonFrom(now: number): number | undefined {
    const horizon = now + (this.#retentionMs ?? Number.POSITIVE_INFINITY)
    return Number.isSafeInteger(horizon) ? horizon : undefined
  }

  /** Resolves when it is done; false where the log, or a source, is gone. */
  async replace(replacement: Replacement): Promise<boolean> {
    const { behind, hurry } = this.#parts
    let done = false
    const change = behind.whenWritten(() => {
      done = this.segments.replace(replacement.sources, replacement.by)
      if (done) this.#replaced(replacement)
    })
    hurry()
    await change
    return done
  }

  #replaced({ by, start, gone }: Replacement): void {
    const { resident, room, state } = this.#parts
    state.forgetAborted(gone)
    resident.replaced(by.base, by.next)
    room.replaced(Math.max(by.base, start), by.next, by.sizeBytes)
  }

  /** Whoever waits in `replace` waits no more. */
  stopWaiting(): void {
    this.#parts.behind.dropChange()
  }

  /** Everything below `until` was rewritten. `horizon`: when the last tombstone in it may go, Infinity for none. */
  finished(until: number, horizon: number): void {
    this.#until = Math.max(this.#until, until)
    this.#horizon = horizon
    this.#looked = -1
  }
}
