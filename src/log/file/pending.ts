/**
 * What a log has accepted and no group holds yet: whole batches, and one that records are still added to. Records of
 * one turn become one batch, so that what a batch costs (its header, its CRC, its entry in the journal) is shared.
 *
 *   sealed     │ batch of records │ wire batch │ batch of records │
 *   builder                                                       │ record │ record │ ▸
 *   offsets    base of the first                                                    end
 */
import type { Key, RecordHeaders } from '../../model/record.ts'
import { BatchBuilder } from '../format/batch-builder.ts'
import type { Crc32c } from '../format/crc32c.ts'
import type { Incoming } from '../format/intake.ts'
import { patchBatch } from '../format/record-batch.ts'

/** A batch of records is sealed when it is this large: what a reader must page in and check at least. */
const BATCH_BYTES = 64 * 1024

/** One whole RecordBatch, its offsets and epoch set. */
export interface PendingBatch {
  readonly bytes: Uint8Array
  readonly base: number
  readonly next: number
  readonly maxTimestamp: number
  /** Whether somebody else made it, so that its values were not validated here. */
  readonly foreign: boolean
  /** A control batch, which is of either kind. */
  readonly control: boolean
  /** Ends a transaction that is not to be seen: whose, and since which offset. */
  readonly aborts: { readonly producerId: number; readonly since: number } | null
}

export class Pending {
  readonly #crc32c: Crc32c
  readonly #builder = new BatchBuilder()
  #sealed: PendingBatch[] = []
  /** Offset after the last record. */
  #next: number
  #open = false
  #base = 0
  #maxTimestamp = 0
  readonly #epoch: number

  constructor(next: number, epoch: number, crc32c: Crc32c) {
    this.#next = next
    this.#epoch = epoch
    this.#crc32c = crc32c
  }

  get isEmpty(): boolean {
    return !this.#open && this.#sealed.length === 0
  }

  /** One record, whose bytes are copied at once. */
  add(value: Uint8Array | null, key: Key | null, headers: RecordHeaders | null, timestamp: number): void {
    if (!this.#open) {
      this.#builder.open(this.#next, timestamp)
      this.#open = true
      this.#base = this.#next
      this.#maxTimestamp = timestamp
    }
    this.#builder.add(value, key, headers, timestamp)
    if (timestamp > this.#maxTimestamp) this.#maxTimestamp = timestamp
    this.#next++
    if (this.#builder.sizeBytes >= BATCH_BYTES) this.#seal()
  }

  /**
   * A batch that is bytes already; they are copied, since their owner may use them again. `openSince`: the first
   * offset of its producer's open transaction, or −1.
   */
  addBatch(incoming: Incoming, openSince: number): void {
    this.#seal()
    const base = this.#next
    const bytes = incoming.bytes.slice()
    patchBatch(bytes, 0, base, this.#epoch)
    const { count, maxTimestamp, producer, marker } = incoming
    this.#next = base + count
    this.#sealed.push({
      bytes,
      base,
      next: this.#next,
      maxTimestamp,
      foreign: true,
      control: marker !== null,
      aborts:
        producer !== null && marker?.commit === false && openSince >= 0
          ? { producerId: producer.id, since: openSince }
          : null,
    })
  }

  /** All of it, in the order of offsets. */
  take(): readonly PendingBatch[] {
    this.#seal()
    const sealed = this.#sealed
    this.#sealed = []
    return sealed
  }

  #seal(): void {
    if (!this.#open) return
    this.#open = false
    this.#sealed.push({
      bytes: this.#builder.finish({ leaderEpoch: this.#epoch, crc32c: this.#crc32c, inProcess: true }),
      base: this.#base,
      next: this.#next,
      maxTimestamp: this.#maxTimestamp,
      foreign: false,
      control: false,
      aborts: null,
    })
  }
}
