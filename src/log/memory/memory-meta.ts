/**
 * The store beside the logs, in memory: a map, and a sorted list of its keys made when a scan needs one.
 * Scans are rare (opening, administration), writes are not, so no order is kept between them.
 */
import type { Meta, MetaChange } from '../contract.ts'

export class MemoryMeta implements Meta {
  readonly #entries = new Map<string, unknown>()

  get(key: string): unknown | undefined {
    return this.#entries.get(key)
  }

  /** Entries as they are now: what is put while the scan is read does not show. */
  scan(prefix: string): Iterable<readonly [string, unknown]> {
    const found = [...this.#entries].filter(([key]) => key.startsWith(prefix))
    return found.sort(([a], [b]) => (a < b ? -1 : 1))
  }

  /** Atomic because nothing can interrupt it. */
  async put(changes: readonly MetaChange[]): Promise<void> {
    for (const [key, value] of changes) {
      if (value === null) this.#entries.delete(key)
      else this.#entries.set(key, value)
    }
  }
}
