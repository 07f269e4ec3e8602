/**
 * Reading a log on disk, as the contract wants it: rows that are decoded already, rows that have to come from the bytes
 * or the disk first, and bytes. While something comes from the disk the log goes on: it may be trimmed or closed, and
 * then that is the answer.
 */
import { Slice } from '../../model/batch.ts'
import { abortedError, OdradekError } from '../../model/errors.ts'
import { type ByteSlice, type Isolation, type Marks, type PeekResult, refusalError } from '../contract.ts'
import type { PartitionState } from '../state.ts'
import type { Chunk } from './chunk.ts'
import type { Resident } from './resident.ts'

/** What a look decodes at most, and a batch: within one run to completion. */
const PEEK_BYTES = 64 * 1024

export class Reading {
  closed = false
  readonly #name: string
  readonly #marks: Readonly<Marks>
  readonly #resident: Resident
  readonly #state: PartitionState

  constructor(name: string, marks: Readonly<Marks>, resident: Resident, state: PartitionState) {
    this.#name = name
    this.#marks = marks
    this.#resident = resident
    this.#state = state
  }

  peek(from: number, max: number, isolation: Isolation, into: Slice): PeekResult {
    const { start, end } = this.#marks
    into.count = 0
    into.next = from
    if (this.closed) return 'end'
    if (from < start || from > end) return 'range'
    const bound = this.#bound(isolation)
    if (from >= bound) return 'end'
    const chunk = this.#resident.find(from)
    if (chunk === undefined) return 'miss'
    const limit = Math.min(bound, chunk.next)
    if (chunk.peek(from, limit, max, isolation, into) === 'hit') return 'hit'
    // What has just been written is read next, as a rule: a turn of the event loop would cost more than its rows.
    this.#resident.decode(chunk, from, bound, PEEK_BYTES, isolation)
    return chunk.peek(from, limit, max, isolation, into)
  }

  async load(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<Slice> {
    const into = new Slice()
    this.#check(from, signal)
    while (this.peek(from, Number.POSITIVE_INFINITY, isolation, into) === 'miss') {
      const chunk = await this.#meanwhile(from, signal, this.#resident.chunkAt(from))
      // Shown as it comes: by the time somebody looks for it again it may have gone.
      if (this.#show(chunk, from, maxBytes, isolation, into) === 'hit') break
    }
    shorten(into, maxBytes)
    return into
  }

  #show(chunk: Chunk, from: number, maxBytes: number, isolation: Isolation, into: Slice): 'hit' | 'miss' {
    const bound = this.#bound(isolation)
    this.#resident.decode(chunk, from, bound, maxBytes, isolation)
    return chunk.peek(from, Math.min(bound, chunk.next), Number.POSITIVE_INFINITY, isolation, into)
  }

  async read(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<ByteSlice> {
    this.#check(from, signal)
    for (;;) {
      const { version } = this.#resident
      const collecting = this.#resident.collect(from, this.#bound(isolation), maxBytes)
      const { bytes, next, done } = await this.#meanwhile(from, signal, collecting)
      // What was compacted meanwhile: markers may be gone, or records that were told of as aborted.
      if (version === this.#resident.version) {
        const aborted = isolation === 'committed' ? this.#state.aborted(from, next) : []
        return done === undefined ? { bytes, next, aborted } : { bytes, next, aborted, done }
      }
      done?.()
    }
  }

  #bound(isolation: Isolation): number {
    return isolation === 'committed' ? this.#marks.stable : this.#marks.high
  }

  /** What was read, or what happened to the log meanwhile. */
  async #meanwhile<T>(from: number, signal: AbortSignal | undefined, reading: Promise<T>): Promise<T> {
    try {
      return await reading
    } finally {
      this.#check(from, signal)
    }
  }

  #check(from: number, signal: AbortSignal | undefined): void {
    if (this.closed) throw refusalError('CLOSED', this.#name)
    if (signal?.aborted) throw abortedError(signal, `a read of ${this.#name}`)
    const { start, end } = this.#marks
    if (from >= start && from <= end) return
    throw new OdradekError('OFFSET_OUT_OF_RANGE', `${this.#name} has ${start} to ${end}, not ${from}`)
  }
}

/** Cuts a run after `maxBytes`, but leaves it one row. */
function shorten(run: Slice, maxBytes: number): void {
  let bytes = 0
  for (let i = 0; i < run.count; i++) {
    bytes += run.columns.sizeAt(run.row + i)
    if (bytes <= maxBytes || i === 0) continue
    run.count = i
    run.next = run.columns.offsetAt(run.row + i)
  }
}
