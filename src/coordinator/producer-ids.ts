/**
 * Ids of producers, each given out once, also across restarts. They are taken from blocks: that a block is taken is
 * durable before the first id of it is given out, so a crash wastes what is left of one and repeats none. Nobody is
 * given 0, which clients say that have none.
 *
 *   meta: producer-ids = 3001
 *
 *   1 ────── 1001 ────── 2001 ──── next ──── end = 3001
 *     former processes        given out │ ours
 */
import type { Meta } from '../log/contract.ts'

const KEY = 'producer-ids'
const FIRST = 1
const BLOCK = 1_000

export class ProducerIds {
  readonly #meta: Meta
  #next = 0
  #end = 0
  #reserving: Promise<void> | null = null

  constructor(meta: Meta) {
    this.#meta = meta
  }

  /** Rejects where the store does, and may be asked again. */
  async next(): Promise<number> {
    while (this.#next === this.#end) {
      this.#reserving ??= this.#reserve()
      await this.#reserving
    }
    return this.#next++
  }

  async #reserve(): Promise<void> {
    const first = (this.#meta.get(KEY) as number | undefined) ?? FIRST
    try {
      await this.#meta.put([[KEY, first + BLOCK]])
      this.#next = first
      this.#end = first + BLOCK
    } finally {
      this.#reserving = null
    }
  }
}
