/** Counts of a reader or a member; each snapshot is a plain copy. */
import type { Counters } from '../model/views.ts'

export class MutableCounters implements Counters {
  delivered: number = 0
  acked: number = 0
  nacked: number = 0
  redelivered: number = 0
  expired: number = 0
  deadLettered: number = 0
  skipped: number = 0
  dropped: number = 0
  zombies: number = 0

  snapshot(): Counters {
    return { ...this }
  }
}
