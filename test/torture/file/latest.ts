/**
 * A compacted topic under torture: of each key the newest record must be there, where it went, or something newer; what
 * was deleted by a tombstone stays deleted; what is left of the rest is as it was, in order. The checker of histories
 * would take what compaction leaves out for lost, so this has facts of its own.
 *
 *   published   a1 b1 a2 c1 b2 a- c2 …         found   ·  ·  ·  ·  b2 ·  c2 …     (a- : tombstone)
 */
import type { Broker } from '../../../src/broker.ts'
import type { Position } from '../../../src/model/options.ts'
import type { LogRecord } from '../../../src/model/record.ts'
import type { Fact, Ledger, Noted } from './ledger.ts'
import { contentOf, corruptionOf, hashOf, tokenOf } from './values.ts'

export const LATEST_TOPIC = 'latest'
const PARTITIONS = 2
export const LATEST_OPTIONS = { partitions: PARTITIONS, cleanup: 'compact', deleteRetentionMs: 5 } as const
const KEYS = 6
/** Of the records, one in so many is a tombstone. */
const TOMBSTONES = 9

export type Kept = Extract<Fact, { fact: 'kept' }>
export type Compacted = Extract<Fact, { fact: 'compacted' }>

export interface Latest {
  readonly token: string
  readonly key: string
  readonly isTombstone: boolean
}

export function latestOf(token: string): Latest {
  const hash = hashOf(`latest ${token}`)
  return { token, key: `c${hash % KEYS}`, isTombstone: hash % TOMBSTONES === 0 }
}

export function entryOf({ token, key, isTombstone }: Latest): {
  readonly value: unknown
  readonly key: string
  readonly headers: { readonly [name: string]: string }
  readonly partition: number
} {
  const { value, headers } = contentOf(token)
  // Keys of one partition each: what is newest is a matter of offsets.
  const partition = hashOf(key) % PARTITIONS
  return { value: isTombstone ? null : value, key, headers: { ...headers, token }, partition }
}

/** It is in, and where. */
export function keep(
  ledger: Ledger,
  { token, key, isTombstone }: Latest,
  { partition, offset }: Position,
): void {
  ledger.note({ fact: 'kept', token, key, partition, offset, isTombstone })
}

export async function lookAtLatest(broker: Broker, ledger: Ledger): Promise<void> {
  if (!broker.listTopics().includes(LATEST_TOPIC)) return
  for (const { partition } of broker.describe(LATEST_TOPIC).partitions) {
    const records = await broker.read(LATEST_TOPIC, partition)
    for (const record of records) {
      const text = corruptionOfLatest(record)
      if (text !== undefined) ledger.note({ fact: 'corrupt', text })
    }
    const found = records.map(
      ({ offset, key, headers }) => [offset, String(key), headers.get('token') ?? ''] as const,
    )
    ledger.note({ fact: 'compacted', partition, records: found })
  }
}

function corruptionOfLatest(record: LogRecord): string | undefined {
  const token = record.headers.get('token') ?? ''
  const where = `${record.topic}/${record.partition}/${record.offset}`
  if (record.value !== null) {
    if (tokenOf(record.value) !== token) return `${where} has not the value of ${token}`
    return corruptionOf(record, (each) => latestOf(each).key)
  }
  const { key, isTombstone } = latestOf(token)
  return isTombstone && record.key === key ? undefined : `${where} is no tombstone of ${key}, as ${token} is`
}

/** What is wrong with what was found, each time somebody looked. */
export function faultsOfLatest(facts: readonly Noted[]): string[] {
  const faults: string[] = []
  const newest = new Map<string, Kept>()
  const places = new Map<string, Kept>()
  for (const { fact } of facts) {
    if (fact.fact === 'kept') {
      places.set(fact.token, fact)
      if (fact.offset > (newest.get(fact.key)?.offset ?? -1)) newest.set(fact.key, fact)
    }
    if (fact.fact === 'compacted') faults.push(...faultsOf(fact, newest, places))
  }
  return faults
}

function* faultsOf(
  { partition, records }: Compacted,
  newest: ReadonlyMap<string, Kept>,
  places: ReadonlyMap<string, Kept>,
): Generator<string> {
  const last = new Map<string, number>()
  const tokens = new Set<string>()
  let before = -1
  for (const [offset, key, token] of records) {
    if (offset <= before) yield `latest/${partition}: offset ${offset} after ${before}`
    before = offset
    last.set(key, offset)
    if (tokens.has(token)) yield `duplicate: ${token} is in latest/${partition} twice`
    tokens.add(token)
    const place = places.get(token)
    if (place !== undefined && place.offset !== offset)
      yield `latest/${partition}: ${token} is at ${offset}, and was acknowledged at ${place.offset}`
  }
  for (const [key, kept] of newest) {
    if (kept.partition !== partition) continue
    const found = last.get(key)
    if ((found ?? -1) >= kept.offset) continue
    if (!kept.isTombstone)
      yield `lost: ${kept.token} of latest/${partition}/${kept.offset}, the newest of ${key}`
    else if (found !== undefined)
      yield `lost: the tombstone ${kept.token} of latest/${partition}/${kept.offset}, and ${key} is back at ${found}`
  }
}
