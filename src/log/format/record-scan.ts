/**
 * Walks the records of one batch as they lie there, uncompressed, for whoever asks only where a record is, which key it
 * has and whether it has a value: compaction copies what stays byte for byte (record-writer.ts has the format).
 *
 *   record   length │ attributes │ timestamp delta │ offset delta │ key │ value │ headers
 *            ↑ position                            ↑ rest         ↑ keyStart             ↑ end
 *
 * One object is the scan and the record it stands on. It reads nothing outside of the bytes it was given.
 */
import { MIN_RECORD_BYTES } from './record-writer.ts'
import { ByteReader, corrupt } from './varint.ts'

export class RecordScan {
  #in: ByteReader = new ByteReader(new Uint8Array(0), 0, 0)
  #until = 0
  #left = 0
  #following = 0

  /** Where the record begins, with its length. */
  position: number = 0
  /** Position after it. */
  end: number = 0
  /** Where its offset delta begins: what comes from here on does not depend on the batch's base timestamp. */
  rest: number = 0
  attributes: number = 0
  timestampDelta: number = 0
  offsetDelta: number = 0
  keyStart: number = 0
  /** −1: the record has no key. */
  keyEnd: number = 0
  /** It has no value: a tombstone. */
  isTombstone: boolean = false

  /** Begins with the first of `count` records, which end at `until`. */
  start(bytes: Uint8Array, from: number, until: number, count: number): this {
    if (count > (until - from) / MIN_RECORD_BYTES) throw corrupt(`${count} records do not fit into the batch`)
    this.#in = new ByteReader(bytes, from, until)
    this.#until = until
    this.#left = count
    this.#following = from
    this.offsetDelta = -1
    return this
  }

  /** Moves to the next record; false behind the last one. @throws OdradekError CORRUPT_LOG */
  next(): boolean {
    const input = this.#in
    const at = this.#following
    if (this.#left === 0) {
      if (at !== this.#until) throw corrupt('bytes follow the last record of a batch')
      return false
    }
    this.#left--
    this.position = at
    input.at = at
    input.end = this.#until
    const size = input.varint()
    this.end = input.at + size
    if (size < 0 || this.end > this.#until) throw corrupt('a record reaches beyond its batch')
    this.#following = this.end
    input.end = this.end
    this.attributes = input.byte()
    this.timestampDelta = input.varlong()
    this.rest = input.at
    const delta = input.varint()
    if (delta <= this.offsetDelta) throw corrupt(`offset delta ${delta} follows ${this.offsetDelta}`)
    this.offsetDelta = delta
    const keySize = input.varint()
    this.keyStart = keySize < 0 ? input.at : input.skip(keySize)
    this.keyEnd = keySize < 0 ? -1 : input.at
    const valueSize = input.varint()
    this.isTombstone = valueSize < 0
    if (valueSize > 0) input.skip(valueSize)
    return true
  }
}
