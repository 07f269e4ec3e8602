/**
 * The pumps that rest at the end of one partition, and the pass over them when there is something new.
 *
 *   places   [ P0  P1  –  P3  P4  P5 | P6 ]        –   left by one that found something else to wait for
 *                ▲ next              ▲ end         P6  came during the pass, and has seen what is new
 *
 * A pump that keeps up stays in its place: it runs there, finds the end again and was never anywhere else. So
 * waking 10,000 of them is a walk over an array, in the order in which they came. What came is looked up once for
 * all who stopped at the same offset, as they do.
 */
import type { PartitionLog } from '../log/contract.ts'
import { Slice } from '../model/batch.ts'
import type { Pump } from './pump.ts'

const NOWHERE = -1
/** Fewer empty places than this are not worth closing up. */
const FEW = 16

/** One for all partitions: they run one at a time, and handlers cannot reach it. */
const rows = new Slice()

export class IdlePumps {
  #places: (Pump | null)[] = []
  #empty = 0
  #next = 0
  #end = 0

  /** Begins a pass over all that are here now. */
  wakeAll(): void {
    this.#tidy()
    this.#next = 0
    this.#end = this.#places.length
  }

  /** Whether some of those that were woken did not run yet. */
  get areWaking(): boolean {
    return this.#next < this.#end
  }

  /** Goes on with the pass until about `budget` records were handed out; how many were, a vain run counted as one. */
  run(budget: number, log: PartitionLog): number {
    const from = this.#places[this.#next]?.next ?? log.marks.stable
    // No rows: all that came is hidden, and who is at the end has to pass over it.
    const seen =
      log.peek(from, budget, 'committed', rows) === 'hit' &&
      rows.count > 0 &&
      rows.columns.headers === null &&
      !rows.columns.foreign
    let handed = 0
    while (handed < budget && this.#next < this.#end) {
      const pump = this.#places[this.#next++]
      if (pump === null || pump === undefined) continue
      handed += (seen ? pump.runAtEnd(rows, from, budget) : pump.run(budget)) || 1
    }
    return handed
  }

  add(pump: Pump): void {
    pump.idleAt = this.#places.length
    this.#places.push(pump)
  }

  remove(pump: Pump): void {
    this.#places[pump.idleAt] = null
    pump.idleAt = NOWHERE
    this.#empty++
    if (!this.areWaking) this.#tidy()
  }

  /** Closes up once half of the places are empty, so that each is passed over at most once on average. */
  #tidy(): void {
    if (this.#empty < FEW || this.#empty < this.#places.length >> 1) return
    this.#places = this.#places.filter((pump) => pump !== null)
    this.#places.forEach((pump, at) => {
      if (pump !== null) pump.idleAt = at
    })
    this.#empty = 0
  }
}
