/**
 * Counts since a member came to be. Members count, since they are at hand where things happen; a reader adds up
 * its members, those that left included, and what never reached one.
 */
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

  add(other: Counters): void {
    this.delivered += other.delivered
    this.acked += other.acked
    this.nacked += other.nacked
    this.redelivered += other.redelivered
    this.expired += other.expired
    this.deadLettered += other.deadLettered
    this.skipped += other.skipped
    this.dropped += other.dropped
    this.zombies += other.zombies
  }

  snapshot(): Counters {
    return { ...this }
  }
}
