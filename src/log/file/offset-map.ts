/**
 * The newest offset of each key, in bounded memory: what a pass of compaction decides by. Keys are kept as they are, not
 * as digests: two that count as one would cost somebody the value of the other.
 *
 *   table   │ hash, entry │ empty │ hash, entry │ ...          open addressing, at most three quarters full
 *   pages   │ offset, length, key │ offset, length, key │ ...  entries end to end, in pages that never move
 *
 * Hashes begin with a secret number, so that nobody can choose keys that all meet in one place of the table.
 */
import { readInt64, writeInt64 } from '../format/integers.ts'

const MiB = 1024 * 1024
const PAGE_BYTES = MiB
const FIRST_SLOTS = 1024
/** Hash and entry. */
const SLOT_BYTES = 8
/** Offset and length. */
const ENTRY_BYTES = 12

/** Of the map, unless a single batch has more keys. */
export const MAP_BYTES: number = 64 * MiB

export class OffsetMap {
  readonly #maxBytes: number
  readonly #seed = crypto.getRandomValues(new Int32Array(2))
  readonly #pages: Uint8Array[] = []
  #pageBytes = 0
  /** Used of the newest page. */
  #used = PAGE_BYTES
  #hashes = new Int32Array(FIRST_SLOTS)
  /** One more than where the entry is; 0 for none. */
  #entries = new Uint32Array(FIRST_SLOTS)
  #size = 0

  constructor(maxBytes: number = MAP_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** Keys. */
  get size(): number {
    return this.#size
  }

  /** Of memory. */
  get heldBytes(): number {
    return this.#pageBytes + this.#entries.length * SLOT_BYTES
  }

  /** Whether it stays within its bound, also while it grows, with so many keys more, of so many bytes in all. */
  fits(keys: number, sizeBytes: number): boolean {
    let slots = this.#entries.length
    while (this.#size + keys > mostIn(slots)) slots *= 2
    const before = slots === this.#entries.length ? 0 : this.#entries.length
    const addedBytes = sizeBytes + keys * ENTRY_BYTES + PAGE_BYTES
    return this.#pageBytes + addedBytes + (slots + before) * SLOT_BYTES <= this.#maxBytes
  }

  /** Of the key that `bytes` are from `start` to `end`; −1 where it is unknown. */
  get(bytes: Uint8Array, start: number, end: number): number {
    const slot = this.#find(this.#hash(bytes, start, end), bytes, start, end)
    const entry = this.#entries[slot] as number
    return entry === 0 ? -1 : readInt64(this.#page(entry), (entry - 1) % PAGE_BYTES)
  }

  set(bytes: Uint8Array, start: number, end: number, offset: number): void {
    const hash = this.#hash(bytes, start, end)
    let slot = this.#find(hash, bytes, start, end)
    let entry = this.#entries[slot] as number
    if (entry === 0) {
      if (this.#size >= mostIn(this.#entries.length)) {
        this.#grow()
        slot = this.#find(hash, bytes, start, end)
      }
      entry = this.#add(bytes, start, end)
      this.#entries[slot] = entry
      this.#hashes[slot] = hash
      this.#size++
    }
    writeInt64(this.#page(entry), (entry - 1) % PAGE_BYTES, offset)
  }

  #page(entry: number): Uint8Array {
    return this.#pages[Math.floor((entry - 1) / PAGE_BYTES)] as Uint8Array
  }

  /** Of the slot that has the key, or where it belongs. */
  #find(hash: number, bytes: Uint8Array, start: number, end: number): number {
    const mask = this.#entries.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#entries[slot] as number
      if (entry === 0 || (this.#hashes[slot] === hash && this.#isAt(entry, bytes, start, end))) return slot
    }
  }

  #isAt(entry: number, bytes: Uint8Array, start: number, end: number): boolean {
    const page = this.#page(entry)
    const at = (entry - 1) % PAGE_BYTES
    if (lengthAt(page, at) !== end - start) return false
    for (let i = start, j = at + ENTRY_BYTES; i < end; i++, j++) if (bytes[i] !== page[j]) return false
    return true
  }

  /** A new entry, without its offset. */
  #add(bytes: Uint8Array, start: number, end: number): number {
    const sizeBytes = ENTRY_BYTES + end - start
    if (this.#used + sizeBytes > PAGE_BYTES) {
      // A key that is larger than a page has one to itself: positions only tell where entries begin.
      const page = new Uint8Array(Math.max(PAGE_BYTES, sizeBytes))
      this.#pages.push(page)
      this.#pageBytes += page.length
      this.#used = 0
    }
    const page = this.#pages.at(-1) as Uint8Array
    const at = this.#used
    const length = end - start
    page.set([length >>> 24, length >>> 16, length >>> 8, length], at + 8)
    if (length < 32) for (let i = 0; i < length; i++) page[at + ENTRY_BYTES + i] = bytes[start + i] as number
    else page.set(bytes.subarray(start, end), at + ENTRY_BYTES)
    this.#used += sizeBytes
    return (this.#pages.length - 1) * PAGE_BYTES + at + 1
  }

  #grow(): void {
    const { length } = this.#entries
    const [hashes, entries] = [this.#hashes, this.#entries]
    this.#hashes = new Int32Array(length * 2)
    this.#entries = new Uint32Array(length * 2)
    const mask = length * 2 - 1
    for (let from = 0; from < length; from++) {
      if (entries[from] === 0) continue
      let slot = (hashes[from] as number) & mask
      while (this.#entries[slot] !== 0) slot = (slot + 1) & mask
      this.#hashes[slot] = hashes[from] as number
      this.#entries[slot] = entries[from] as number
    }
  }

  /** HalfSipHash-1-3. */
  #hash(bytes: Uint8Array, start: number, end: number): number {
    const k0 = this.#seed[0] as number
    const k1 = this.#seed[1] as number
    let [v0, v1, v2, v3] = [k0, k1, 0x6c796765 ^ k0, 0x74656462 ^ k1]
    const length = end - start
    // Whole words, then what is left with the length, then the end of the input and two rounds more.
    for (let at = start, words = (length >> 2) + 4; words > 0; words--, at += 4) {
      const word = words > 3 ? wordAt(bytes, at, end, length) : 0
      if (words === 3) v2 ^= 0xff
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }
    return v1 ^ v3
  }
}

function mostIn(slots: number): number {
  return slots * 0.75
}

function lengthAt(page: Uint8Array, at: number): number {
  return (
    (((page[at + 8] as number) << 24) |
      ((page[at + 9] as number) << 16) |
      ((page[at + 10] as number) << 8) |
      (page[at + 11] as number)) >>>
    0
  )
}

/** Four bytes, little-endian; the last word has what is left, and the length on top. */
function wordAt(bytes: Uint8Array, at: number, end: number, length: number): number {
  if (at + 4 <= end) {
    return (
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)
    )
  }
  let word = length << 24
  for (let i = at, shift = 0; i < end; i++, shift += 8) word |= (bytes[i] as number) << shift
  return word
}
