/**
 * How many bytes lie between two offsets of a log, without asking the disk: what retention by bytes needs to know
 * at once. Points are known every 32 KiB; between two of them records count as equally large.
 *
 *   offsets     0 ─────── 310 ───────── 622 ─── 701          the last point is always the end
 *   positions   0 ─────── 33 KiB ────── 66 KiB ─ 74 KiB      bytes of batches since the log began, or was opened
 */
const SPACING_BYTES = 32 * 1024

export class Extent {
  #offsets: number[]
  #positions: number[]
  /** Points before this one are below the log's start. */
  #first = 0

  constructor(start: number) {
    this.#offsets = [start]
    this.#positions = [0]
  }

  get endPosition(): number {
    return this.#positions.at(-1) as number
  }

  /** The log ends at offset `next` now, `sizeBytes` later. */
  append(next: number, sizeBytes: number): void {
    const last = this.#offsets.length - 1
    const position = (this.#positions[last] as number) + sizeBytes
    const before = last === this.#first ? Number.NEGATIVE_INFINITY : (this.#positions[last - 1] as number)
    if (last > this.#first && position - before <= SPACING_BYTES) {
      this.#offsets[last] = next
      this.#positions[last] = position
      return
    }
    this.#offsets.push(next)
    this.#positions.push(position)
  }

  /** Between two offsets, up to which all is known, lie so many bytes now. */
  replaced(from: number, to: number, sizeBytes: number): void {
    if (from >= to) return
    const points = this.#offsets.map((offset, i) => [offset, this.#positions[i] as number] as const)
    const known = points.slice(this.#first)
    const position = this.positionOf(from)
    const shift = position + sizeBytes - this.positionOf(to)
    const kept = known.filter(([offset]) => offset < from)
    const moved = known.filter(([offset]) => offset > to).map(([offset, at]) => [offset, at + shift] as const)
    const all = [...kept, [from, position] as const, [to, position + sizeBytes] as const, ...moved]
    this.#offsets = all.map(([offset]) => offset)
    this.#positions = all.map(([, at]) => at)
    this.#first = 0
  }

  /** Never falls as `offset` grows; the first known position below the first point, the end's above the last. */
  positionOf(offset: number): number {
    const index = this.#indexOf(offset)
    const at = this.#offsets[index] as number
    const position = this.#positions[index] as number
    const next = this.#offsets[index + 1]
    if (next === undefined || offset <= at) return position
    const share = (offset - at) / (next - at)
    return position + Math.floor(share * ((this.#positions[index + 1] as number) - position))
  }

  /** The lowest offset whose position is not below `position`. */
  offsetAt(position: number): number {
    let low = this.#first
    let high = this.#positions.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#positions[middle] as number) >= position) high = middle
      else low = middle + 1
    }
    const above = this.#offsets[low] as number
    if (low === this.#first) return above
    const offset = this.#offsets[low - 1] as number
    const from = this.#positions[low - 1] as number
    const size = (this.#positions[low] as number) - from
    const at = offset + Math.ceil(((position - from) / size) * (above - offset))
    // Division rounds: the one before may be it.
    return at - 1 > offset && this.positionOf(at - 1) >= position ? at - 1 : Math.min(at, above)
  }

  /** Nothing below `start` is asked for any more. */
  trim(start: number): void {
    const last = this.#offsets.length - 1
    while (this.#first < last && (this.#offsets[this.#first + 1] as number) <= start) this.#first++
    // By halves, so that a point is moved once on average.
    if (this.#first < 64 || this.#first * 2 < this.#offsets.length) return
    this.#offsets.splice(0, this.#first)
    this.#positions.splice(0, this.#first)
    this.#first = 0
  }

  /** The last point at or below `offset`, or the first. */
  #indexOf(offset: number): number {
    let low = this.#first
    let high = this.#offsets.length
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if ((this.#offsets[middle] as number) <= offset) low = middle
      else high = middle
    }
    return low
  }
}
