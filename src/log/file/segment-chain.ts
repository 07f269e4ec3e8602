/**
 * Walks batches as a segment must hold them: each whole and under its CRC, each beginning where the one before ended,
 * and of no older leader epoch. A batch's CRC leaves out its base offset and its epoch, so those are told from what
 * surrounds it. In a compacted segment offsets may be missing.
 */
import type { Crc32c } from '../format/crc32c.ts'
import { BatchScan } from '../format/scan.ts'
import type { Damage } from './damage.ts'

export class BatchChain {
  readonly batch: BatchScan
  readonly #compacted: boolean
  /** Offset that comes next, or at the earliest. */
  next: number = 0
  epoch: number = Number.NEGATIVE_INFINITY
  /** Of the file, where the bytes begin. */
  #origin = 0
  damage: Damage | null = null

  constructor(crc32c: Crc32c, compacted: boolean) {
    this.batch = new BatchScan({ crc32c })
    this.#compacted = compacted
  }

  /** Where in the file the batch begins, or the walk has stopped. */
  get position(): number {
    return this.#origin + this.batch.position
  }

  /** Goes on with the first `length` of `bytes`, which are at `origin` of the file. */
  begin(bytes: Uint8Array, length: number, origin: number): void {
    this.#origin = origin
    this.batch.start(bytes, 0, length)
  }

  /** Moves to the next batch. False: there is none that is whole, or something is wrong. */
  step(): boolean {
    const { batch } = this
    if (!batch.next()) {
      if (batch.end === 'zeros') return this.fail('zeros where a batch should be')
      return batch.end === 'corrupt' ? this.fail(batch.fault) : false
    }
    const { base, leaderEpoch } = batch
    if (base !== this.next && !(this.#compacted && base > this.next)) {
      return this.fail(`offset ${base} where ${this.next} should be`)
    }
    if (leaderEpoch < this.epoch) return this.fail(`leader epoch ${leaderEpoch} after ${this.epoch}`)
    this.next = batch.last + 1
    this.epoch = leaderEpoch
    return true
  }

  fail(what: string, position: number = this.position): false {
    this.damage ??= { position, what }
    return false
  }
}
