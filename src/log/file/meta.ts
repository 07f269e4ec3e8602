/**
 * The store beside the logs: a map in memory, whose changes go through the journal with everything else of their
 * moment and are in every checkpoint as a whole.
 *
 * `get` and `scan` see a change at once, before it is on the disk: within the process it has happened. A crash takes
 * it back, along with whatever was accepted after it.
 */
import type { Meta, MetaChange } from '../contract.ts'
import type { Committer } from './committer.ts'

export class FileMeta implements Meta {
  readonly #entries: Map<string, unknown>
  readonly #committer: Committer

  constructor(entries: Map<string, unknown>, committer: Committer) {
    this.#entries = entries
    this.#committer = committer
  }

  get(key: string): unknown | undefined {
    return this.#entries.get(key)
  }

  scan(prefix: string): Iterable<readonly [string, unknown]> {
    const found = [...this.#entries].filter(([key]) => key.startsWith(prefix))
    return found.sort(([a], [b]) => (a < b ? -1 : 1))
  }

  /** What shows is what is read back after a restart, and nobody else's to change. @throws TypeError for what is no JSON */
  async put(changes: readonly MetaChange[]): Promise<void> {
    const { failure } = this.#committer
    if (failure !== undefined) throw failure
    if (changes.length === 0) return this.#committer.put()
    const json = JSON.stringify(changes)
    applyChanges(this.#entries, JSON.parse(json))
    return this.#committer.put(json)
  }

  /** All of it, as it is now. */
  entries(): readonly (readonly [string, unknown])[] {
    return [...this.#entries]
  }
}

export function applyChanges(entries: Map<string, unknown>, changes: readonly MetaChange[]): void {
  for (const [key, value] of changes) {
    if (value === null) entries.delete(key)
    else entries.set(key, value)
  }
}
