/**
 * The verdict over one data directory: what the checker of histories finds, and what only the facts show. Kinds of
 * anomaly are counted under what users call them.
 */
import { History, type HistoryEvent } from '../../../src/testing/history.ts'
import type { AnomalyKind } from '../../../src/testing/history-anomalies.ts'
import { checkHistory } from '../../../src/testing/history-checks.ts'
import { EXACT_GROUP, isBad, resultOf } from './crew.ts'
import { faultsOfLatest } from './latest.ts'
import type { Fact, Noted, Run } from './ledger.ts'
import { placeName } from './left.ts'

export interface Verdict {
  /** Publishes that were answered. */
  readonly acked: number
  /** Answered, and not there. */
  readonly lost: number
  /** There twice. */
  readonly duplicated: number
  /** Records served that are not as they were published. */
  readonly corrupt: number
  /** All that is wrong, for people. */
  readonly faults: readonly string[]
}

export interface Account {
  readonly events: readonly HistoryEvent[]
  readonly facts: readonly Noted[]
}

/** The process that sent what a history begins with. */
export const IMPORTED = 'a life before'

const LOST: ReadonlySet<AnomalyKind> = new Set(['lost-write', 'unseen', 'restart-read-regressed'])
const CORRUPT: ReadonlySet<AnomalyKind> = new Set(['inconsistent-offsets', 'unsent-read', 'aborted-read'])

export function judge({ events, facts }: Account): Verdict {
  const results = new Set(lastScans(events).get('done'))
  const anomalies = checkHistory(History.fromJSON({ seed: null, events })).filter(
    // A transaction that was in when the process died: nobody was told of its ack.
    ({ kind, group, value }) =>
      kind !== 'unaccounted-record' || group !== EXACT_GROUP || !results.has(resultOf(String(value))),
  )
  const corrupt = facts.flatMap(({ fact }) => (fact.fact === 'corrupt' ? [`corrupt: ${fact.text}`] : []))
  const count = (kinds: ReadonlySet<AnomalyKind>): number =>
    anomalies.filter(({ kind }) => kinds.has(kind)).length
  const latest = faultsOfLatest(facts)
  return {
    acked:
      events.filter((event) => event.type === 'send-ok' && !isImported(events, event)).length +
      facts.filter(({ fact }) => fact.fact === 'kept').length,
    lost: count(LOST) + latest.filter((fault) => fault.startsWith('lost')).length,
    duplicated: count(new Set(['duplicate'])),
    corrupt: count(CORRUPT) + corrupt.length,
    faults: [
      ...facts.flatMap(({ fact }) => (fact.fact === 'fault' ? [fact.text] : [])),
      ...corrupt,
      ...anomalies.map(
        ({ kind, message, topic, partition, group }) =>
          `${kind}: ${message} (${topic}/${partition}, ${group})`,
      ),
      ...latest,
      ...halfTransactions(events, facts),
      ...storedAndAgain(events, facts),
    ],
  }
}

function isImported(events: readonly HistoryEvent[], { of }: { readonly of: number }): boolean {
  return (events[of] as Extract<HistoryEvent, { type: 'send' }>).process === IMPORTED
}

/** What the last scan of each partition found, by topic. */
function lastScans(events: readonly HistoryEvent[]): Map<string, string[]> {
  const scans = new Map<string, { readonly topic: string; readonly values: string[] }>()
  for (const event of events) {
    if (event.type !== 'scan-ok') continue
    const scan = events[event.of] as Extract<HistoryEvent, { type: 'scan' }>
    const values = event.records.map(({ value }) => String(value))
    scans.set(`${scan.topic}/${scan.partition}`, { topic: scan.topic, values })
  }
  const found = new Map<string, string[]>()
  for (const { topic, values } of scans.values()) found.set(topic, [...(found.get(topic) ?? []), ...values])
  return found
}

/** Transactions are there as a whole or not at all, and each job has one end. */
function halfTransactions(events: readonly HistoryEvent[], facts: readonly Noted[]): string[] {
  const found = lastScans(events)
  const sets = new Map([...found].map(([topic, values]) => [topic, new Set(values)]))
  const faults: string[] = []
  for (const { fact } of facts) {
    if (fact.fact !== 'together') continue
    // Retention may have taken one side.
    const parts = fact.parts.filter(([topic]) => topic !== 'window')
    const there = parts.filter(([topic, token]) => sets.get(topic)?.has(token) === true)
    if (there.length !== 0 && there.length !== parts.length)
      faults.push(
        `of a transaction only ${JSON.stringify(there)} is there, not all of ${JSON.stringify(parts)}`,
      )
  }
  const results = sets.get('done')
  for (const token of found.get('jobs') ?? []) {
    const done = results?.has(resultOf(token)) === true
    if (done && isBad(token)) faults.push(`${token} has a result, though every worker rejects it`)
  }
  return faults
}

/** Whether anything was handed out again whose settle had been stored. */
function storedAndAgain(events: readonly HistoryEvent[], facts: readonly Noted[]): string[] {
  const faults: string[] = []
  const stored = new Map<string, Extract<Fact, { fact: 'stored' }>>()
  let next = 0
  for (const event of events) {
    for (; next < facts.length && (facts[next] as Noted).at <= event.index; next++) {
      const { fact } = facts[next] as Noted
      if (fact.fact === 'stored') stored.set(placeName(fact.group, fact.topic, fact.partition), fact)
    }
    if (event.type !== 'deliver') continue
    const { group, topic, partition, offset } = event
    const place = stored.get(placeName(group, topic, partition))
    if (place === undefined) continue
    if (offset < place.offset || place.settled.some((run: Run) => offset >= run[0] && offset < run[1]))
      faults.push(`${group} got ${topic}/${partition}/${offset} again, which was settled, and stored`)
  }
  return faults
}
