/**
 * The last judgement over a group's cursor: each record from where it was put is one of
 *
 *   settled        acked or dead-lettered; at most once: delivered
 *   dropped        in a range that a `drop` named, and counted by it
 *   pending        at or beyond the committed offset, unless the group was drained since
 *   expired        pending when retention passed it, in a group that does not hold the log
 *
 * and for everything else somebody has to answer.
 */
import type { DropEvent, HistoryEvent } from './history.ts'
import type { Findings } from './history-anomalies.ts'
import type { Cursor, GroupFacts, Tracked } from './history-cursor.ts'
import { type Entry, lowerBound } from './history-facts.ts'

export function judgeAccounts(group: GroupFacts, cursor: Cursor, crashed: boolean, found: Findings): void {
  judgeEnd(group, cursor, found)
  if (cursor.start === null || cursor.pending !== null) return
  const ranges = new Ranges(cursor.drops)
  judgeSuspects(group, cursor, ranges, found)
  // At most once, a crash may take what was committed before its handler ran.
  if (!(group.atMostOnce && crashed)) judgeRecords(group, cursor, cursor.start, ranges, found)
}

/** What drops named: disjoint, in order. */
class Ranges {
  readonly #ranges: { readonly from: number; to: number }[] = []

  constructor(drops: readonly DropEvent[]) {
    for (const { from, to } of [...drops].sort((a, b) => a.from - b.from)) {
      const last = this.#ranges.at(-1)
      if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
      else this.#ranges.push({ from, to })
    }
  }

  has(offset: number): boolean {
    const range = this.#ranges[lowerBound(this.#ranges, offset, ({ to }) => to)]
    return range !== undefined && range.from <= offset
  }
}

/** Sends of unknown outcome may have made the log longer than anybody saw. */
function judgeEnd(group: GroupFacts, cursor: Cursor, found: Findings): void {
  const { facts, highestCommit } = cursor
  if (highestCommit === null || highestCommit.offset <= facts.end + facts.topic.unsettledSends) return
  const message = `${highestCommit.offset} was committed where the log ends at ${facts.end}`
  const place = { ...facts.place(highestCommit.offset), group: group.name }
  found.add('commit-beyond-end', place, message, highestCommit)
}

function judgeSuspects(group: GroupFacts, cursor: Cursor, ranges: Ranges, found: Findings): void {
  for (const { overtaken, since, by } of cursor.suspects) {
    if (!group.rules.lossless && droppable(overtaken) && ranges.has(overtaken.offset)) continue
    const message = `offset ${by.offset} overtook ${overtaken.offset}, which waited for another delivery`
    const place = { ...cursor.facts.place(by.offset, by.value), group: group.name }
    found.add('order-violation', place, message, since, by)
  }
}

function judgeRecords(
  group: GroupFacts,
  cursor: Cursor,
  start: number,
  ranges: Ranges,
  found: Findings,
): void {
  const entries = cursor.facts.sorted
  const drained = group.drained?.index ?? -1
  let dropped = 0
  let droppedByDrained = 0
  for (let i = lowerBound(entries, start, (entry) => entry.offset); i < entries.length; i++) {
    const entry = entries[i] as Entry
    const record = cursor.records.get(entry.offset)
    if (entry.facts.aborted || settled(group, record)) continue
    if (!group.rules.lossless && droppable(record) && ranges.has(entry.offset)) {
      dropped++
      if (entry.evidence.index < drained) droppedByDrained++
      continue
    }
    const proof = whyOwed(group, cursor, entry)
    if (proof === null) continue
    const message = `offset ${entry.offset} ${fate(record)}`
    const place = { ...cursor.facts.place(entry.offset, entry.facts.value), group: group.name }
    found.add('unaccounted-record', place, message, record?.last ?? entry.evidence, proof)
  }
  if (!group.rules.lossless) judgeDrops(group, cursor, dropped, droppedByDrained, found)
}

function settled(group: GroupFacts, record: Tracked | undefined): boolean {
  if (record === undefined) return false
  return group.atMostOnce || record.acked || record.deadLettered
}

function droppable(record: Tracked | undefined): boolean {
  return record === undefined || record.state === 'waiting'
}

function fate(record: Tracked | undefined): string {
  if (record === undefined) return 'was never delivered'
  if (record.state === 'ended') return 'failed for good, and there is no dead letter'
  return record.state === 'waiting' ? 'was given back, and never came again' : 'is still in flight'
}

/** The event after which a record without an outcome is not pending any more. */
function whyOwed(group: GroupFacts, cursor: Cursor, entry: Entry): HistoryEvent | null {
  const { facts } = cursor
  if (entry.offset < cursor.committed) return cursor.lastCommit
  const evicted = entry.offset < facts.start
  if (evicted) return group.rules.lossless ? facts.eviction : null
  return group.drained !== null && entry.evidence.index < group.drained.index ? group.drained : null
}

function judgeDrops(
  group: GroupFacts,
  cursor: Cursor,
  dropped: number,
  droppedByDrained: number,
  found: Findings,
): void {
  const last = cursor.drops.at(-1)
  if (last === undefined) return
  const counted = cursor.drops.reduce((sum, drop) => sum + drop.count, 0)
  const { facts } = cursor
  const drainedSince = (group.drained?.index ?? -1) > last.index
  const enough = !drainedSince || counted >= droppedByDrained
  if (enough && counted <= dropped + facts.topic.unsettledSends) return
  const message = `${counted} records were counted as dropped, ${dropped} have no outcome there`
  const place = { ...facts.place(last.to), group: group.name }
  found.add('drops-miscounted', place, message, cursor.drops[0] ?? null, last)
}
