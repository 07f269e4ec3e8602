/**
 * Committed offsets: what cursors report, stored in groups through the engine's `Meta`.
 *
 * Where nothing outlives the process there is nothing to write: the cursors are the store. On a durable
 * engine progress is collected for `commitFlushMs`, then put with one atomic change; after a crash only
 * what was not flushed comes again.
 */
import type { CommitPort, CoreContext } from '../core/context.ts'
import type { Cursor } from '../core/cursor.ts'
import { Due } from '../core/due-queue.ts'
import type { CursorState } from '../core/restored.ts'
import type { Engine, MetaChange } from '../log/contract.ts'

const PREFIX = 'offset/'

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
    if (!this.durable || !cursor.reader.durable) return
    this.#dirty.add(cursor)
    const ctx = this.#ctx as CoreContext
    if (this.heapIndex < 0) ctx.due.schedule(this, ctx.clock.monotonic() + this.#flushMs)
  }

  override fire(): void {
    this.flush().catch((error: unknown) =>
      (this.#ctx as CoreContext).events.error(error, 'storing committed offsets'),
    )
  }

  async flush(): Promise<void> {
    if (this.#dirty.size === 0) return
    const changes: MetaChange[] = []
    for (const cursor of this.#dirty) changes.push(change(cursor))
    this.#dirty.clear()
    await this.#engine.meta.put(changes)
  }

  async store(cursor: Cursor): Promise<void> {
    this.#dirty.delete(cursor)
    if (!this.durable || !cursor.reader.durable) return
    await this.#engine.meta.put([change(cursor)])
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
