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

export function judgeAccounts(group: GroupFacts, cursor: Cursor, crashes: number, found: Findings): void {
  judgeEnd(group, cursor, found)
  if (cursor.start === null || cursor.pending !== null) return
  const ranges = new Ranges(cursor.drops)
  judgeSuspects(group, cursor, ranges, found)
  // At most once, a crash may take what was committed before its handler ran.
  if (group.atMostOnce && crashes > cursor.crashes) return
  judgeRecords(group, cursor, cursor.start, ranges, crashes, found)
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
  if (highestCommit === null || highestCommit.offset <= facts.end + facts.topic.unplacedSends) return
  const message = `${highestCommit.offset} was committed where the log ends at ${facts.end}`
  const place = { ...facts.place(highestCommit.offset), group: group.name }
  found.add('commit-beyond-end', place, message, highestCommit)
}

function judgeSuspects(group: GroupFacts, cursor: Cursor, ranges: Ranges, found: Findings): void {
  for (const { overtaken, since, by } of cursor.suspects) {
    if (droppable(overtaken) && ranges.has(overtaken.offset)) continue
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
  crashes: number,
  found: Findings,
): void {
  const entries = cursor.facts.sorted
  const drained = group.drained?.index ?? -1
  const tally: DropTally = { dropped: 0, byDrained: 0, again: 0 }
  for (let i = lowerBound(entries, start, (entry) => entry.offset); i < entries.length; i++) {
    const entry = entries[i] as Entry
    if (entry.facts.aborted) continue
    const record = cursor.records.get(entry.offset)
    const named = !group.rules.lossless && ranges.has(entry.offset)
    if (named && record !== undefined && mayComeAgain(group, record, crashes)) tally.again++
    else if (record !== undefined && settled(group, record)) continue
    else if (named && droppable(record)) {
      tally.dropped++
      if (entry.evidence.index < drained) tally.byDrained++
    } else judgeOpen(group, cursor, entry, record, found)
  }
  if (!group.rules.lossless) judgeDrops(group, cursor, tally, found)
}

/** A record without an outcome may be pending. */
function judgeOpen(
  group: GroupFacts,
  cursor: Cursor,
  entry: Entry,
  record: Tracked | undefined,
  found: Findings,
): void {
  const proof = whyOwed(group, cursor, entry)
  if (proof === null) return
  const message = `offset ${entry.offset} ${fate(record)}`
  const place = { ...cursor.facts.place(entry.offset, entry.facts.value), group: group.name }
  found.add('unaccounted-record', place, message, record?.last ?? entry.evidence, proof)
}

function settled(group: GroupFacts, record: Tracked): boolean {
  return group.atMostOnce || record.acked || record.deadLetter !== null
}

/** Settled, as it seems; but a replay was on its way, or a crash may have forgotten it. */
function mayComeAgain(group: GroupFacts, record: Tracked, crashes: number): boolean {
  if (record.doubtful) return true
  return settled(group, record) && (record.state === 'waiting' || record.crashes < crashes)
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

/** Records in the ranges that drops named. */
interface DropTally {
  /** Without an outcome, so that they count as dropped. */
  dropped: number
  /** Those of them that were there when the group was drained. */
  byDrained: number
  /** Settled, as it seems, and perhaps dropped when they came again. */
  again: number
}

function judgeDrops(group: GroupFacts, cursor: Cursor, tally: DropTally, found: Findings): void {
  const last = cursor.drops.at(-1)
  if (last === undefined) return
  const counted = cursor.drops.reduce((sum, drop) => sum + drop.count, 0)
  const { facts } = cursor
  const drainedSince = (group.drained?.index ?? -1) > last.index
  const most = tally.dropped + tally.again + facts.topic.unplacedSends
  if (counted <= most && (!drainedSince || counted >= tally.byDrained)) return
  const message = `${counted} records were counted as dropped, ${tally.dropped} have no outcome there`
  const place = { ...facts.place(last.to), group: group.name }
  found.add('drops-miscounted', place, message, cursor.drops[0] ?? null, last)
}
