/**
 * Committed offsets: what cursors report, stored in groups through the engine's `Meta`.
 *
 *   offset/<reader key>/<topic id>/<partition>  →  a cursor's state │ note: metadata, leader epoch, time
 *
 * Where nothing outlives the process there is nothing to write while a reader is there: its cursors are the store.
 * On a durable engine progress is collected for `commitFlushMs`, then put with one atomic change; after a crash only
 * what was not flushed comes again. What could not be put stays dirty and is tried again.
 *
 * A note is what a commit by Kafka's protocol says beside the offset. It is kept as long as the offset is the same.
 */
import type { CommitPort, CoreContext } from '../core/context.ts'
import type { Cursor } from '../core/cursor.ts'
import { Due } from '../core/due-queue.ts'
import { type CursorState, withoutStarts } from '../core/restored.ts'
import type { Engine, MetaChange } from '../log/contract.ts'

export const OFFSET_PREFIX = 'offset/'
/** Pause after a put failed. */
const RETRY_MS = 1_000

/** What stands beside a committed offset. */
export interface CommitNote {
  readonly metadata: string
  /** Leader epoch of the last record that was consumed, or −1. */
  readonly epoch: number
  /** When it was committed: milliseconds since the epoch. */
  readonly at: number
}

/** What is stored under a key. */
export interface StoredOffset extends CursorState {
  readonly note?: CommitNote
}

export class OffsetStore extends Due implements CommitPort {
  readonly durable: boolean
  readonly #engine: Engine
  readonly #flushMs: number
  readonly #dirty = new Set<Cursor>()
  #ctx: CoreContext | undefined

  constructor(engine: Engine, flushMs: number) {
    super()
    this.#engine = engine
    this.#flushMs = flushMs
    this.durable = engine.durable
  }

  bind(ctx: CoreContext): void {
    this.#ctx = ctx
  }

  changed(cursor: Cursor): void {
    cursor.dirty = true
    if (!this.#keeps(cursor)) return
    this.#dirty.add(cursor)
    if (this.heapIndex < 0) this.#schedule(this.#flushMs)
  }

  override fire(): void {
    this.flush().catch((error: unknown) =>
      (this.#ctx as CoreContext).events.error(error, 'storing committed offsets'),
    )
  }

  flush(): Promise<void> {
    return this.store([...this.#dirty])
  }

  /** All of them in one change. */
  async store(cursors: readonly Cursor[]): Promise<void> {
    const kept = cursors.filter((cursor) => this.#keeps(cursor))
    for (const cursor of cursors) this.#dirty.delete(cursor)
    if (kept.length === 0) return
    try {
      await this.#engine.meta.put(kept.map((cursor) => this.#change(cursor)))
    } catch (error) {
      for (const cursor of kept) this.#dirty.add(cursor)
      this.#schedule(RETRY_MS)
      throw error
    }
  }

  /** One that was closed has left its place to a successor, or to nobody; one that was not placed has none. */
  #keeps(cursor: Cursor): boolean {
    return this.durable && cursor.reader.durable && !cursor.closed && cursor.isPlaced
  }

  #schedule(delayMs: number): void {
    const ctx = this.#ctx as CoreContext
    ctx.due.schedule(this, ctx.clock.monotonic() + delayMs)
  }

  /** What was stored for a reader in one partition. */
  load(readerKey: string, topicId: string, partition: number): StoredOffset | undefined {
    return this.#engine.meta.get(offsetKey(readerKey, topicId, partition)) as StoredOffset | undefined
  }

  /** Stores where cursors are that are about to go, for whoever comes after them: in memory too. */
  async leaveBehind(cursors: Iterable<Cursor>): Promise<void> {
    const changes: MetaChange[] = []
    for (const cursor of cursors) {
      this.#dirty.delete(cursor)
      if (cursor.isPlaced) changes.push(this.#change(cursor, withoutStarts(cursor.state())))
    }
    if (changes.length > 0) await this.#engine.meta.put(changes)
  }

  /** Drops what is stored for a cursor whose reader or topic is gone. */
  async forget(cursors: Iterable<Cursor>): Promise<void> {
    const changes: MetaChange[] = []
    for (const cursor of cursors) {
      this.#dirty.delete(cursor)
      changes.push([keyOfCursor(cursor), null])
    }
    if (changes.length > 0) await this.#engine.meta.put(changes)
  }

  #change(cursor: Cursor, state: CursorState = cursor.state()): MetaChange {
    cursor.dirty = false
    const key = keyOfCursor(cursor)
    const before = this.#engine.meta.get(key) as StoredOffset | undefined
    const keepsNote = before?.note !== undefined && before.offset === state.offset
    return [key, keepsNote ? { ...state, note: before.note } : state]
  }
}

function keyOfCursor(cursor: Cursor): string {
  return offsetKey(cursor.reader.key, cursor.partition.topic.id, cursor.partition.index)
}

/** Where the offset of a reader is filed. */
export function offsetKey(readerKey: string, topicId: string, partition: number): string {
  return `${offsetsOf(readerKey)}${topicId}/${partition}`
}

/** What the keys of all offsets of a reader begin with. */
export function offsetsOf(readerKey: string): string {
  return `${OFFSET_PREFIX}${encodeURIComponent(readerKey)}/`
}
