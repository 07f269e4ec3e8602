/**
 * The bytes of one simulated file: what processes see, what the disk has, and what lies between.
 *
 *   content   ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓   size            the page cache: every write, at once
 *   versions      ●     ●●●   ●              ●●            per sector, and of the size: since the last sync
 *   disk      ░░░░░░░░░░░░░░░░░░░           diskSize       what surely survives
 *
 * A sector of 512 bytes is written whole or not at all. After a power loss each sector holds any one of its
 * versions, or what the disk had, whatever the others hold, and so does the size; only what a truncation cut off
 * never comes back once the truncation survived. A sync that failed leaves its versions behind as clean: no later
 * sync writes them, although every reader still sees them.
 */
import type { Dice } from '../torture/dice.ts'

const SECTOR_BYTES = 512
const ZEROS = new Uint8Array(SECTOR_BYTES)

export interface Pending {
  /** Place in the order of everything that happened on the machine. */
  readonly seq: number
}

interface Version extends Pending {
  /** The whole sector. */
  readonly bytes: Uint8Array
  /** Made by a truncation. */
  readonly cut: boolean
}

interface Size extends Pending {
  readonly sizeBytes: number
}

/** What a power loss leaves of a list of pending changes to one thing: so many of the first. */
export type Survival = (pending: readonly Pending[]) => number

/** Each thing by itself comes as far as chance lets it. */
export function scattered(dice: Dice, share: number): Survival {
  return (pending) => {
    if (dice.chance(share)) return pending.length
    return dice.chance(share) ? dice.below(pending.length) : 0
  }
}

/** Everything up to a moment, nothing after it: a write in the middle is torn. */
export function inOrder(until: number): Survival {
  return (pending) => pending.filter(({ seq }) => seq <= until).length
}

export class Ticks {
  last: number

  constructor(last = 0) {
    this.last = last
  }

  next(): number {
    return ++this.last
  }
}

/** Bytes that grow by whole sectors; zeros beyond the size. */
class Bytes {
  data: Uint8Array = new Uint8Array(SECTOR_BYTES)
  size = 0

  resize(size: number): void {
    if (size > this.data.length) {
      const sectors = Math.ceil(Math.max(size, this.data.length * 2) / SECTOR_BYTES)
      const grown = new Uint8Array(sectors * SECTOR_BYTES)
      grown.set(this.data)
      this.data = grown
    }
    if (size < this.size) this.data.fill(0, size, this.size)
    this.size = size
  }

  /** Also beyond the size, where a sector ends. */
  sector(index: number): Uint8Array {
    return this.data.slice(index * SECTOR_BYTES, (index + 1) * SECTOR_BYTES)
  }

  /** A whole sector, as far as the size lets it. */
  store(index: number, bytes: Uint8Array): void {
    const at = index * SECTOR_BYTES
    if (at < this.size) this.data.set(bytes.subarray(0, this.size - at), at)
  }

  copy(): Bytes {
    const copy = new Bytes()
    copy.resize(this.size)
    copy.data.set(this.data.subarray(0, this.size))
    return copy
  }
}

export class SimFile {
  readonly #content: Bytes
  readonly #disk: Bytes
  readonly #versions: Map<number, Version[]>
  #sizes: Size[] = []
  readonly #allocated = new Set<number>()
  /** Versions up to here count as written, though they were not: a sync of them failed. */
  #forgotten = 0

  constructor(
    content: Bytes = new Bytes(),
    disk: Bytes = new Bytes(),
    versions: Map<number, Version[]> = new Map(),
  ) {
    this.#content = content
    this.#disk = disk
    this.#versions = versions
  }

  /** A file that is on the disk. */
  static of(bytes: Uint8Array): SimFile {
    const disk = new Bytes()
    disk.resize(bytes.length)
    disk.data.set(bytes)
    const file = new SimFile(disk.copy(), disk)
    for (let sector = 0; sector * SECTOR_BYTES < bytes.length; sector++) file.#allocated.add(sector)
    return file
  }

  get size(): number {
    return this.#content.size
  }

  get allocatedBytes(): number {
    return this.#allocated.size * SECTOR_BYTES
  }

  bytes(): Uint8Array {
    return this.#content.data.slice(0, this.#content.size)
  }

  read(into: Uint8Array, position: number): number {
    const end = Math.min(position + into.length, this.#content.size)
    if (end <= position) return 0
    into.set(this.#content.data.subarray(position, end))
    return end - position
  }

  /** How many of `length` bytes can be written while `freeBytes` are left on the disk. */
  fits(position: number, length: number, freeBytes: number): number {
    if (freeBytes === Number.POSITIVE_INFINITY) return length
    let left = freeBytes
    for (let at = position; at < position + length; at = endOfSector(at)) {
      if (this.#allocated.has(sectorOf(at))) continue
      left -= SECTOR_BYTES
      if (left < 0) return at - position
    }
    return length
  }

  write(bytes: Uint8Array, position: number, ticks: Ticks): void {
    for (let at = position; at < position + bytes.length; ) {
      const end = Math.min(endOfSector(at), position + bytes.length)
      this.#writeInto(sectorOf(at), bytes.subarray(at - position, end - position), at, ticks)
      at = end
    }
  }

  #writeInto(sector: number, part: Uint8Array, at: number, ticks: Ticks): void {
    const content = this.#content
    this.#allocated.add(sector)
    const grows = at + part.length > content.size
    if (grows) content.resize(at + part.length)
    // Zeros into a hole change nothing but the size: files are allocated that way, megabytes at a time.
    const before = content.data.subarray(at, at + part.length)
    const same = !this.#versions.has(sector) && Buffer.compare(part, before) === 0
    if (!same) {
      content.data.set(part, at)
      this.#remember(sector, ticks.next(), false)
    }
    if (grows) this.#sizes.push({ seq: ticks.next(), sizeBytes: content.size })
  }

  #remember(sector: number, seq: number, cut: boolean): void {
    const version = { seq, bytes: this.#content.sector(sector), cut }
    const versions = this.#versions.get(sector)
    if (versions === undefined) this.#versions.set(sector, [version])
    else versions.push(version)
  }

  truncate(sizeBytes: number, ticks: Ticks): void {
    const before = this.#content.size
    if (sizeBytes === before) return
    const seq = ticks.next()
    const changed: number[] = []
    for (let at = sizeBytes; at < before; at = endOfSector(at)) {
      const sector = sectorOf(at)
      if (at % SECTOR_BYTES === 0) this.#allocated.delete(sector)
      const zeros =
        Buffer.compare(
          this.#content.data.subarray(at, endOfSector(at)),
          ZEROS.subarray(at % SECTOR_BYTES),
        ) === 0
      if (!zeros || this.#versions.has(sector)) changed.push(sector)
    }
    this.#content.resize(sizeBytes)
    this.#sizes.push({ seq, sizeBytes })
    for (const sector of changed) this.#remember(sector, seq, true)
  }

  /** What was there at `until` is on the disk now, except what a failed sync let go. */
  sync(until: number): void {
    const size = this.#sizes.findLast(({ seq }) => seq <= until)
    if (size !== undefined && size.seq > this.#forgotten) {
      this.#disk.resize(size.sizeBytes)
      this.#sizes = this.#sizes.filter(({ seq }) => seq > until)
    }
    for (const [sector, versions] of this.#versions) {
      const version = versions.findLast(({ seq }) => seq <= until)
      if (version === undefined || version.seq <= this.#forgotten) continue
      // Data that was written takes the size along, over a hole if need be.
      const end = Math.min((sector + 1) * SECTOR_BYTES, size?.sizeBytes ?? 0)
      if (end > this.#disk.size) this.#disk.resize(end)
      this.#disk.store(sector, version.bytes)
      const left = versions.filter(({ seq }) => seq > until)
      if (left.length === 0) this.#versions.delete(sector)
      else this.#versions.set(sector, left)
    }
  }

  /** A sync failed: the kernel takes what it could not write for written. */
  forget(until: number): void {
    this.#forgotten = until
  }

  /** Sequences of what may be lost. */
  *pending(): Generator<number> {
    for (const { seq } of this.#sizes) yield seq
    for (const versions of this.#versions.values()) for (const { seq } of versions) yield seq
  }

  /** The file as the next boot finds it. */
  survivor(survival: Survival): SimFile {
    const size = this.#sizes[survival(this.#sizes) - 1]
    const disk = this.#disk.copy()
    disk.resize(size?.sizeBytes ?? disk.size)
    for (const [sector, versions] of this.#versions) {
      const cut = versions.findLastIndex((version) => version.cut && version.seq <= (size?.seq ?? 0)) + 1
      const kept = versions[Math.max(survival(versions), cut) - 1]
      if (kept !== undefined) disk.store(sector, kept.bytes)
    }
    return SimFile.of(disk.data.subarray(0, disk.size))
  }

  /** The same file for the next process, on the same machine without a boot between them. */
  copy(): SimFile {
    const versions = new Map([...this.#versions].map(([sector, all]) => [sector, [...all]]))
    const file = new SimFile(this.#content.copy(), this.#disk.copy(), versions)
    file.#sizes = [...this.#sizes]
    file.#forgotten = this.#forgotten
    for (const sector of this.#allocated) file.#allocated.add(sector)
    return file
  }

  /** Decay: it is in all layers, as the disk's fault would be. */
  flipBit(position: number, bit: number): void {
    const flip = (bytes: Uint8Array, at: number): void => {
      bytes[at] = (bytes[at] as number) ^ (1 << bit)
    }
    flip(this.#content.data, position)
    if (position < this.#disk.size) flip(this.#disk.data, position)
    const versions = this.#versions.get(sectorOf(position)) ?? []
    versions.forEach((version, i) => {
      const bytes = version.bytes.slice()
      flip(bytes, position % SECTOR_BYTES)
      versions[i] = { ...version, bytes }
    })
  }
}

function sectorOf(position: number): number {
  return Math.floor(position / SECTOR_BYTES)
}

function endOfSector(position: number): number {
  return (sectorOf(position) + 1) * SECTOR_BYTES
}
