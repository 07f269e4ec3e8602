/**
 * What the chunks of all logs may hold in memory, and which of them go first. One list through the entries
 * themselves, so that a touch moves a few references and allocates nothing.
 *
 *   oldest ◄──► entry ◄──► entry ◄──► entry ◄──► newest      each has something to give: rows, or all of it
 *
 * - What an entry can make again (decoded rows) goes before what must come from the disk (its batches).
 * - A pinned entry is nowhere else yet: its batches count apart and never go, its rows like any others. It is in
 *   the list only while it has rows.
 * - The newest entry stays even if it is larger than everything allowed: somebody is reading it.
 * - What was read before anybody asked for it is a small part: with more readers than that is enough for, one would push
 *   out what another was about to ask for, and everything would be read twice.
 */
import { MiB } from '../../model/limits.ts'

const DEFAULT_MAX_BYTES = 64 * MiB
/** Of what is allowed, each of this may be an entry that nobody asked for yet. */
const BYTES_PER_AHEAD = MiB

/** What the cache holds. Its sizes are told to the cache by `resized`; the rest is the cache's own. */
export abstract class CacheEntry {
  /** Bytes that come back from the disk only. */
  abstract readonly heldBytes: number
  /** Bytes that it can make again, about. */
  abstract readonly rowBytes: number
  /** Gives up what it can make again. */
  abstract dropRows(): void
  /** It has left the cache: its owner forgets it. */
  abstract evicted(): void

  /** From here on the cache's own: whether the entry is in the cache, and pinned, and not asked for yet, */
  cached = false
  pinned = false
  isAhead = false
  /** in the list, and between whom, */
  linked = false
  older: CacheEntry | null = null
  newer: CacheEntry | null = null
  /** and what it counts for, in all and among the pinned. */
  countedBytes = 0
  countedPinned = 0
}

export class ChunkCache {
  readonly maxBytes: number
  #bytes = 0
  #pinnedBytes = 0
  /** Entries that nobody asked for yet. */
  #ahead = 0
  #oldest: CacheEntry | null = null
  #newest: CacheEntry | null = null

  constructor(maxBytes: number = DEFAULT_MAX_BYTES) {
    this.maxBytes = maxBytes
  }

  /** Bytes that count against `maxBytes`. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of pinned batches. */
  get pinnedBytes(): number {
    return this.#pinnedBytes
  }

  /** As the newest. A pinned one stays until it is unpinned or removed. */
  add(entry: CacheEntry, pinned: boolean = false): void {
    entry.cached = true
    entry.pinned = pinned
    this.resized(entry)
  }

  /** Before anybody asked for it. */
  addAhead(entry: CacheEntry): void {
    this.add(entry)
    entry.isAhead = true
    this.#ahead++
  }

  /** Whether something more may be added before anybody asks for it. */
  get readsAhead(): boolean {
    return this.#ahead < this.maxBytes / BYTES_PER_AHEAD
  }

  /** It is used: one of the last to go now. */
  touch(entry: CacheEntry): void {
    if (entry.isAhead) this.#asked(entry)
    if (entry === this.#newest || !entry.linked) return
    this.#unlink(entry)
    this.#link(entry)
  }

  /** It has grown, which is a use too. Others may have to go for it. Harmless when it is gone. */
  resized(entry: CacheEntry): void {
    if (!entry.cached) return
    this.#count(entry)
    this.touch(entry)
    this.#shrink()
  }

  /** What it holds is on the disk now. */
  unpin(entry: CacheEntry): void {
    entry.pinned = false
    this.resized(entry)
  }

  /** Its owner has no use for it. Harmless when it is gone. */
  remove(entry: CacheEntry): void {
    this.#bytes -= entry.countedBytes
    this.#pinnedBytes -= entry.countedPinned
    entry.countedBytes = 0
    entry.countedPinned = 0
    entry.cached = false
    if (entry.isAhead) this.#asked(entry)
    if (entry.linked) this.#unlink(entry)
  }

  #asked(entry: CacheEntry): void {
    entry.isAhead = false
    this.#ahead--
  }

  #count(entry: CacheEntry): void {
    const { heldBytes, rowBytes, pinned } = entry
    const counted = pinned ? rowBytes : heldBytes + rowBytes
    this.#bytes += counted - entry.countedBytes
    entry.countedBytes = counted
    const countedPinned = pinned ? heldBytes : 0
    this.#pinnedBytes += countedPinned - entry.countedPinned
    entry.countedPinned = countedPinned
    if (!pinned || rowBytes > 0) {
      if (!entry.linked) this.#link(entry)
    } else if (entry.linked) this.#unlink(entry)
  }

  #shrink(): void {
    while (this.#bytes > this.maxBytes && this.#oldest !== null && this.#oldest !== this.#newest) {
      const entry = this.#oldest
      if (entry.rowBytes > 0) {
        entry.dropRows()
        this.#count(entry)
      } else {
        this.remove(entry)
        entry.evicted()
      }
    }
  }

  #link(entry: CacheEntry): void {
    entry.older = this.#newest
    if (this.#newest === null) this.#oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
    entry.linked = true
  }

  #unlink(entry: CacheEntry): void {
    const { older, newer } = entry
    if (older === null) this.#oldest = newer
    else older.newer = newer
    if (newer === null) this.#newest = older
    else newer.older = older
    entry.older = null
    entry.newer = null
    entry.linked = false
  }
}
