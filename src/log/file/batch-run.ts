/**
 * Whole batches in memory, end to end in one piece of bytes. The bytes are the directory too: of a batch only its
 * position and flags are kept beside them, the rest is read from its header.
 *
 *   bytes       │ batch 0 │ batch 1 │ control │ batch 3 │         │
 *   positions   0         p1        p2        p3        used      capacity
 *   flags       0         ABORTED   CONTROL   0
 *
 * Bytes once written never change: a reader is handed a view of them, which stays good when the run grows (into new
 * bytes) or is forgotten. Offsets may have gaps, inside of batches and between them.
 */
import { assert } from '../../model/errors.ts'
import { readInt32, readInt64 } from '../format/integers.ts'
import { IN_PROCESS, LAST_DELTA_AT, MAX_TIMESTAMP_AT } from '../format/layout.ts'
import { BatchScan } from '../format/scan.ts'

/** A transaction marker: never shown as a record. */
export const CONTROL = 1
/** Of an aborted transaction: shown to `uncommitted` readers only. */
export const ABORTED = 2
/** Could not be decoded: one row to a reader, whatever its count. */
export const POISON = 4

const NOTHING = new Uint8Array(0)

/** What a batch costs in the directory. */
const BATCH_OVERHEAD_BYTES = 16

/** Reads headers; none of its users lets another one in between. */
const scan = new BatchScan()

/** Whole batches as bytes, and the offset after them. */
export interface Collected {
  readonly bytes: Uint8Array
  readonly next: number
}

export class BatchRun {
  readonly base: number
  /** Offset after the last batch, or higher where offsets are missing behind it. */
  next: number
  readonly inProcess: boolean
  bytes: Uint8Array
  usedBytes = 0
  readonly positions: number[] = []
  readonly #flags: number[] = []
  /** The codecs of its batches, a bit for each. */
  codecs = 0
  /** Whether there is nothing but records shown to everybody, without gaps. */
  plain = true

  /** Empty. `bytes`: of its own, to be filled from the beginning. */
  constructor(base: number, inProcess: boolean, bytes: Uint8Array) {
    this.base = base
    this.next = base
    this.inProcess = inProcess
    this.bytes = bytes
  }

  /**
   * Whole batches that were checked, as runs of one kind each (control batches go with whatever they are among). They
   * are views of `bytes`, which nobody changes any more. Offsets go from `base` to `next`.
   */
  static of(bytes: Uint8Array, base: number, next: number): BatchRun[] {
    const runs: BatchRun[] = []
    let from = base
    for (let position = 0; position < bytes.length; ) {
      const { inProcess, end } = oneKind(bytes, position)
      const run = new BatchRun(from, inProcess, bytes.subarray(position, end))
      run.#index(end - position)
      runs.push(run)
      from = run.next
      position = end
    }
    // Also where all offsets are missing there is something to go on behind.
    const last = runs.at(-1) ?? new BatchRun(base, false, NOTHING)
    if (runs.length === 0) runs.push(last)
    assert(last.next <= next, 'offsets end behind the batches')
    if (last.next < next) last.plain = false
    last.next = next
    return runs
  }

  get length(): number {
    return this.positions.length
  }

  /** Bytes of memory. */
  get heldBytes(): number {
    return this.bytes.length + this.length * BATCH_OVERHEAD_BYTES
  }

  /** Whether these bytes lie where the next ones go. */
  isNext(batches: Uint8Array): boolean {
    const { bytes } = this
    return batches.buffer === bytes.buffer && batches.byteOffset === bytes.byteOffset + this.usedBytes
  }

  /** Nothing more comes: what is left of its bytes is somebody else's. */
  end(): void {
    this.bytes = this.bytes.subarray(0, this.usedBytes)
  }

  /**
   * Copies whole batches to the end, unless they lie there already. They follow `next`, and are of this kind or control
   * batches.
   */
  append(batches: Uint8Array): void {
    const usedBytes = this.usedBytes + batches.length
    if (this.isNext(batches)) {
      this.#index(usedBytes)
      return
    }
    if (usedBytes > this.bytes.length) this.#grow(usedBytes)
    this.bytes.set(batches, this.usedBytes)
    this.#index(usedBytes)
  }

  /** Marks what `producerId` has in here from `firstOffset` on, up to the marker that ended it, if that is here. */
  markAborted(producerId: number, firstOffset: number): void {
    let index = this.indexOf(firstOffset)
    scan.start(this.bytes, this.positions[index] ?? this.usedBytes, this.usedBytes)
    for (; scan.next(); index++) {
      if (scan.producerId !== producerId) continue
      if (scan.control) return
      if (scan.transactional) this.flag(index, ABORTED)
    }
  }

  /**
   * A view of whole batches, the first of which holds `from` or follows it: those below `limit`, at least one, and
   * no more than `maxBytes` with the others.
   */
  collect(from: number, limit: number, maxBytes: number): Collected {
    const first = this.indexOf(from)
    const begin = this.positions[first] ?? this.usedBytes
    let index = first
    while (index < this.length && this.baseOf(index) < limit) {
      if (index > first && this.endOf(index) - begin > maxBytes) break
      index++
    }
    const bytes = this.bytes.subarray(begin, this.positions[index] ?? this.usedBytes)
    if (index === this.length) return { bytes, next: this.next }
    return { bytes, next: index === first ? limit : this.nextOf(index - 1) }
  }

  // ── the directory ─────────────────────────────────────────────────────────────────────────────

  /** The batch that holds `offset`, or the first one after it. */
  indexOf(offset: number): number {
    let low = 0
    let high = this.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.nextOf(middle) > offset) high = middle
      else low = middle + 1
    }
    return low
  }

  /** The first batch from `index` on without any of `flags`. */
  skip(index: number, flags: number): number {
    let at = index
    while (at < this.length && this.has(at, flags)) at++
    return at
  }

  has(index: number, flags: number): boolean {
    return ((this.#flags[index] as number) & flags) !== 0
  }

  flag(index: number, flag: number): void {
    this.#flags[index] = (this.#flags[index] as number) | flag
    this.plain = false
  }

  baseOf(index: number): number {
    return readInt64(this.bytes, this.positions[index] as number)
  }

  /** Offset where the batch begins; behind the last one, where offsets end. */
  startOf(index: number): number {
    return index < this.length ? this.baseOf(index) : this.next
  }

  /** Offset after the batch. */
  nextOf(index: number): number {
    const at = this.positions[index] as number
    return readInt64(this.bytes, at) + readInt32(this.bytes, at + LAST_DELTA_AT) + 1
  }

  maxTimestampOf(index: number): number {
    return readInt64(this.bytes, (this.positions[index] as number) + MAX_TIMESTAMP_AT)
  }

  /** Position after the batch. */
  endOf(index: number): number {
    return this.positions[index + 1] ?? this.usedBytes
  }

  /** Takes what is new up to `usedBytes` into the directory. */
  #index(usedBytes: number): void {
    scan.start(this.bytes, this.usedBytes, usedBytes)
    while (scan.next()) {
      assert(scan.base >= this.next, 'batches follow each other')
      assert(scan.control || isInProcess() === this.inProcess, 'a run has batches of one kind')
      this.positions.push(scan.position)
      this.#flags.push(0)
      this.codecs |= 1 << scan.compression
      if (scan.control) this.flag(this.length - 1, CONTROL)
      if (scan.base !== this.next || scan.last - scan.base !== scan.count - 1) this.plain = false
      this.next = scan.last + 1
    }
    assert(scan.end === 'end', 'batches are whole')
    this.usedBytes = usedBytes
  }

  #grow(neededBytes: number): void {
    const bytes = new Uint8Array(Math.max(neededBytes, this.bytes.length * 2))
    bytes.set(this.bytes.subarray(0, this.usedBytes))
    this.bytes = bytes
  }
}

/** Of the batch that is scanned. */
function isInProcess(): boolean {
  return (scan.attributes & IN_PROCESS) !== 0
}

/** How far batches from `from` on are of one kind, and which. */
function oneKind(bytes: Uint8Array, from: number): { readonly inProcess: boolean; readonly end: number } {
  let inProcess: boolean | undefined
  scan.start(bytes, from)
  while (scan.next()) {
    if (scan.control) continue
    inProcess ??= isInProcess()
    if (isInProcess() !== inProcess) break
  }
  return { inProcess: inProcess ?? false, end: scan.position }
}
