/**
 * Committed offsets: what cursors report, stored in groups through the engine's `Meta`.
 *
 * Where nothing outlives the process there is nothing to write: the cursors are the store. On a durable
 * engine progress is collected for `commitFlushMs`, then put with one atomic change; after a crash only
 * what was not flushed comes again. What could not be put stays dirty and is tried again.
 */
import type { CommitPort, CoreContext } from '../core/context.ts'
import type { Cursor } from '../core/cursor.ts'
import { Due } from '../core/due-queue.ts'
import type { CursorState } from '../core/restored.ts'
import type { Engine, MetaChange } from '../log/contract.ts'

const PREFIX = 'offset/'
/** Pause after a put failed. */
const RETRY_MS = 1_000

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
      await this.#engine.meta.put(kept.map(change))
    } catch (error) {
      for (const cursor of kept) this.#dirty.add(cursor)
      this.#schedule(RETRY_MS)
      throw error
    }
  }

  /** One that was closed has left its place to a successor, or to nobody. */
  #keeps(cursor: Cursor): boolean {
    return this.durable && cursor.reader.durable && !cursor.closed
  }

  #schedule(delayMs: number): void {
    const ctx = this.#ctx as CoreContext
    ctx.due.schedule(this, ctx.clock.monotonic() + delayMs)
  }

  /** What was stored for a reader in one partition. */
  load(readerKey: string, topicId: string, partition: number): CursorState | undefined {
    return this.#engine.meta.get(keyOf(readerKey, topicId, partition)) as CursorState | undefined
  }

  /** Drops what is stored for a cursor whose reader or topic is gone. */
  async forget(cursors: Iterable<Cursor>): Promise<void> {
    const changes: MetaChange[] = []
    for (const cursor of cursors) {
      this.#dirty.delete(cursor)
      changes.push([keyOfCursor(cursor), null])
    }
    if (this.durable && changes.length > 0) await this.#engine.meta.put(changes)
  }
}

function change(cursor: Cursor): MetaChange {
  cursor.dirty = false
  return [keyOfCursor(cursor), cursor.state()]
}

function keyOfCursor(cursor: Cursor): string {
  return keyOf(cursor.reader.key, cursor.partition.topic.id, cursor.partition.index)
}

function keyOf(readerKey: string, topicId: string, partition: number): string {
  return `${PREFIX}${encodeURIComponent(readerKey)}/${topicId}/${partition}`
}
