/**
 * What can be wrong with a history. Each kind has one meaning, and a history that breaks one promise is
 * reported under one kind.
 *
 * Of the log, from sends, polls, scans and deliveries:
 *
 * | kind | a history in which |
 * |---|---|
 * | `inconsistent-offsets` | one offset held two values |
 * | `duplicate` | one value sits at two positions of its topic |
 * | `lost-write` | an acknowledged record was read by nobody, though a reader passed its offset |
 * | `unseen` | an acknowledged record was read by nobody, and the last scan of its partition, begun later, ended before it |
 * | `aborted-read` | somebody read a value all of whose sends failed |
 * | `unsent-read` | somebody read a value that nobody had sent by then (in topics with sends at all) |
 * | `skipped-read` | a reader passed over a record that others read and that was not evicted before |
 * | `nonmonotonic-read` | a reader went back, within a poll or from one to the next, without a seek |
 * | `nonmonotonic-send` | two acknowledged sends to a partition got offsets against the order of the calls of one process, or although one had ended before the other began |
 * | `restart-read-regressed` | a scan after a restart lacks a record that had been read before it |
 *
 * Of groups, from deliveries to commits. A record is *settled* by an ack or a dead letter (at-most-once: by
 * the delivery itself):
 *
 * | kind | a history in which |
 * |---|---|
 * | `commit-regressed` | a committed offset went back, or below where the cursor was put, replay aside |
 * | `commit-beyond-end` | a committed offset is past the end of its partition |
 * | `commit-past-unsettled` | a committed offset passed a record whose delivery was then still to end |
 * | `unaccounted-record` | a record below the committed offset, or any at `drained`, was neither settled nor dropped; or one left a log that a lossless group holds |
 * | `drops-miscounted` | a group counted more or fewer drops than it has records without an outcome |
 * | `bad-redelivery` | a record came again though nothing called for it: it was settled (crash aside), in the same hands, or below where the cursor was put |
 * | `attempts-out-of-bounds` | an attempt does not follow from how the one before ended, or exceeds the group's; or a record was dead-lettered with attempts left |
 * | `dead-lettered-twice` | a record was dead-lettered more than once per replay |
 * | `concurrent-ownership` | two members had one record in flight, or, where they own partitions, one partition |
 * | `order-violation` | of one partition, or key, two records were in flight, or a later one overtook an unsettled one |
 * | `stale-settle` | a settle took effect on a delivery that had ended: settled, expired, left, fenced by a replay |
 */
import type { HistoryEvent, Token } from './history.ts'

export const ANOMALY_KINDS = [
  'inconsistent-offsets',
  'duplicate',
  'lost-write',
  'unseen',
  'aborted-read',
  'unsent-read',
  'skipped-read',
  'nonmonotonic-read',
  'nonmonotonic-send',
  'restart-read-regressed',
  'commit-regressed',
  'commit-beyond-end',
  'commit-past-unsettled',
  'unaccounted-record',
  'drops-miscounted',
  'bad-redelivery',
  'attempts-out-of-bounds',
  'dead-lettered-twice',
  'concurrent-ownership',
  'order-violation',
  'stale-settle',
] as const

export type AnomalyKind = (typeof ANOMALY_KINDS)[number]

/** Where it happened, as far as that can be said. */
export interface AnomalyPlace {
  readonly topic: string | null
  readonly partition: number | null
  readonly offset: number | null
  readonly value: Token | null
  readonly group: string | null
}

export interface Anomaly extends AnomalyPlace {
  readonly kind: AnomalyKind
  /** For people. */
  readonly message: string
  /** The events that contradict each other, the earlier first. */
  readonly events: readonly HistoryEvent[]
}

/** Collects anomalies, a bounded number of each kind: a broken broker breaks a million records alike. */
export class Findings {
  readonly #maxPerKind: number
  readonly #counts = new Map<AnomalyKind, number>()
  readonly #found: Anomaly[] = []

  constructor(maxPerKind: number) {
    this.#maxPerKind = maxPerKind
  }

  add(
    kind: AnomalyKind,
    place: Partial<AnomalyPlace>,
    message: string,
    ...events: (HistoryEvent | null)[]
  ): void {
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    if (count > this.#maxPerKind) return
    const { topic = null, partition = null, offset = null, value = null, group = null } = place
    const involved = events.filter((event) => event !== null).sort((a, b) => a.index - b.index)
    this.#found.push({ kind, message, topic, partition, offset, value, group, events: involved })
  }

  /** In the order in which they came to light. */
  list(): Anomaly[] {
    const lastIndex = (anomaly: Anomaly): number => anomaly.events.at(-1)?.index ?? 0
    return this.#found.sort((a, b) => lastIndex(a) - lastIndex(b))
  }
}
