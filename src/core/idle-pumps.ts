/**
 * The pumps that rest at the end of one partition, in the order in which they got there: who waited longest goes on first.
 *
 *   first ─► pump ⇄ pump ⇄ pump ◄─ last
 *
 * The links are the pumps' own, since a reader that keeps up comes and goes with every record: nothing is allocated,
 * and to wake 10,000 of them nothing else of theirs is touched.
 */
import type { Pump } from './pump.ts'

export class IdlePumps {
  #first: Pump | null = null
  #last: Pump | null = null

  add(pump: Pump): void {
    pump.idleBefore = this.#last
    if (this.#last === null) this.#first = pump
    else this.#last.idleAfter = pump
    this.#last = pump
  }

  remove(pump: Pump): void {
    const { idleBefore, idleAfter } = pump
    if (idleBefore === null) this.#first = idleAfter
    else idleBefore.idleAfter = idleAfter
    if (idleAfter === null) this.#last = idleBefore
    else idleAfter.idleBefore = idleBefore
    pump.idleBefore = null
    pump.idleAfter = null
  }

  /** Each takes itself out as it wakes. */
  wakeAll(): void {
    for (let pump = this.#first; pump !== null; pump = this.#first) pump.wake()
  }
}
