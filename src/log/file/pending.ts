/**
 * What a log has accepted and no group holds yet: whole batches, and one that records are still added to. Records of
 * one turn become one batch, so that what a batch costs (its header, its CRC, its entry in the journal) is shared.
 *
 *   sealed     │ batch of records │ wire batch │ batch of records │
 *   builder                                                       │ record │ record │ ▸
 *   offsets    base of the first                                                    end
 */
import type { Key, RecordHeaders } from '../../model/record.ts'
import { BatchBuilder, type FinishOptions } from '../format/batch-builder.ts'
import type { Crc32c } from '../format/crc32c.ts'
import type { Incoming } from '../format/intake.ts'
import { patchBatch } from '../format/record-batch.ts'
import type { Slab, SlabFiller } from './slab.ts'

const KiB = 1024
/** A batch of records is sealed when it is this large: what a reader must page in and check at least. */
const BATCH_BYTES = 64 * KiB
/** What is made room for where a batch is expected to become so large. */
const ROOM_BYTES = BATCH_BYTES + 4 * KiB

/** Batches up to this share memory: they need it until they are committed, and so do their neighbours. */
const SHARED_BYTES = 4 * KiB
const SLAB_BYTES = 64 * KiB

let slab = new Uint8Array(0)
let slabUsedBytes = 0

/** Memory for a batch. To allocate some for each small one costs more than to make the batch. */
function shared(sizeBytes: number): Uint8Array {
  if (sizeBytes > SHARED_BYTES) return new Uint8Array(sizeBytes)
  if (slabUsedBytes + sizeBytes > slab.length) {
    slab = new Uint8Array(SLAB_BYTES)
    slabUsedBytes = 0
  }
  const from = slabUsedBytes
  slabUsedBytes += sizeBytes
  return slab.subarray(from, slabUsedBytes)
}

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
  /** What it lies in, where that is used again: held for it until somebody lets go. */
  readonly slab: Slab | null
}

export class Pending {
  readonly #options: FinishOptions
  readonly #builder = new BatchBuilder()
  #sealed: PendingBatch[] = []
  /** Offset after the last record. */
  #next: number
  /** There was more than one batch the last time: the next one is expected to be large. */
  #inBursts = false
  #open = false
  #base = 0
  #maxTimestamp = 0
  readonly #epoch: number
  readonly #filler: SlabFiller

  constructor(next: number, epoch: number, crc32c: Crc32c, filler: SlabFiller) {
    this.#next = next
    this.#filler = filler
    this.#epoch = epoch
    this.#options = { leaderEpoch: epoch, crc32c, inProcess: true, memory: shared }
  }

  /** How many batches records of this size would begin. */
  batchesOf(sizeBytes: number): number {
    return Math.floor(sizeBytes / BATCH_BYTES) + (this.#open ? 0 : 1)
  }

  /** One record, whose bytes are copied at once. */
  add(value: Uint8Array | null, key: Key | null, headers: RecordHeaders | null, timestamp: number): void {
    if (!this.#open) {
      const large = this.#inBursts || this.#sealed.length > 0
      this.#builder.open(this.#next, timestamp, large ? ROOM_BYTES : undefined)
      this.#open = true
      this.#base = this.#next
      this.#maxTimestamp = timestamp
    }
    this.#builder.add(value, key, headers, timestamp)
    if (timestamp > this.#maxTimestamp) this.#maxTimestamp = timestamp
    this.#next++
    if (this.#builder.sizeBytes >= BATCH_BYTES) this.seal()
  }

  /**
   * A batch that is bytes already; they are copied, since their owner may use them again. `openSince`: the first
   * offset of its producer's open transaction, or −1.
   */
  addBatch(incoming: Incoming, openSince: number): void {
    this.seal()
    const base = this.#next
    const { bytes, slab } = this.#filler.copy(incoming.bytes)
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
      slab,
    })
  }

  /** All of it, in the order of offsets. */
  take(): readonly PendingBatch[] {
    this.seal()
    const sealed = this.#sealed
    this.#sealed = []
    this.#inBursts = sealed.length > 1
    return sealed
  }

  /** Ends the batch that records are added to. */
  seal(): void {
    if (!this.#open) return
    this.#open = false
    this.#sealed.push({
      bytes: this.#builder.finish(this.#options),
      base: this.#base,
      next: this.#next,
      maxTimestamp: this.#maxTimestamp,
      foreign: false,
      control: false,
      aborts: null,
      slab: null,
    })
  }
}
