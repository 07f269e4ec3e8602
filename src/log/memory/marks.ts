/**
 * The marks of a log in memory. Only `end` is written per append; the others follow from it: `high` is `end`, and
 * once a log is full `start` slides along at a fixed distance, as long as nothing holds it back.
 *
 *   floor          start = end − keep                end
 *   │ evicted since │             kept               │
 *   └ up to here it is accounted for (retained.ts)
 */
import type { Marks } from '../contract.ts'

export class LiveMarks implements Marks {
  end: number = 0
  epoch: number = 0
  /** `start` is not below it. */
  floor: number = 0
  /** Records kept by a full log: `start` slides along behind `end` at this distance, */
  keep: number = 0
  /** but no further than this. */
  slideTo: number = 0
  /** First offset of the oldest open transaction, or −1. */
  held: number = -1

  get start(): number {
    return Math.max(this.floor, Math.min(this.end - this.keep, this.slideTo))
  }

  get high(): number {
    return this.end
  }

  get stable(): number {
    return this.held < 0 ? this.end : Math.max(this.held, this.start)
  }
}
