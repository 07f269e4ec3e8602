/**
 * Order by key: which unsettled records share a key, oldest first. Only the head of a chain may be handed
 * out; the others are held, and nothing else is.
 *
 *   'alice' → D7 ─► D12 ─► D30        D7 in flight or retrying, D12 and D30 held
 *   'bob'   → D9
 *
 * A record knows its chain from the moment it enters it, since a handler may scribble over the bytes of its
 * key. One that a run hands out and that settles while its handler is still on the stack never gets here,
 * so the common synchronous delivery pays one size check.
 */
import { type Key, keyIdentity } from '../model/record.ts'
import type { DeliveryRecord } from './delivery.ts'

export interface Chain {
  readonly identity: string
  head: DeliveryRecord
  tail: DeliveryRecord
}

export class KeyChains {
  /** Made with the first one: most readers never have any. */
  #chains: Map<string, Chain> | null = null
  /** Keys with an unsettled record. A field, since it is read for every record. */
  size: number = 0

  /** The newest unsettled record of this key. */
  last(key: Key): DeliveryRecord | undefined {
    return this.#chains?.get(keyIdentity(key))?.tail
  }

  /** Appends an unsettled record; keyless ones are free. */
  add(record: DeliveryRecord): void {
    const key = record.key
    if (key === null) return
    const identity = keyIdentity(key)
    this.#chains ??= new Map()
    const chain = this.#chains.get(identity)
    if (chain !== undefined) {
      chain.tail.more().nextOfKey = record
      chain.tail = record
      record.more().chain = chain
      return
    }
    const made = { identity, head: record, tail: record }
    record.more().chain = made
    this.#chains.set(identity, made)
    this.size++
  }

  /** Whether an earlier record of the same key is unsettled. */
  isBehind(record: DeliveryRecord): boolean {
    const chain = record.extra?.chain ?? null
    return chain !== null && chain.head !== record
  }

  /** A settled record leaves its chain; answers the record that is now the oldest of its key. */
  remove(record: DeliveryRecord): DeliveryRecord | undefined {
    const { extra } = record
    if (extra === null || extra.chain === null) return undefined
    const { chain, nextOfKey: next } = extra
    extra.chain = null
    if (chain.head !== record) {
      const before = previousOf(chain, record)
      before.more().nextOfKey = next
      if (next === null) chain.tail = before
      return chain.head
    }
    if (next !== null) {
      chain.head = next
      return next
    }
    this.#chains?.delete(chain.identity)
    this.size--
    return undefined
  }

  /** A successor takes its predecessor's place. */
  replace(old: DeliveryRecord, successor: DeliveryRecord): void {
    const { extra } = old
    if (extra === null || extra.chain === null) return
    const { chain, nextOfKey } = extra
    extra.chain = null
    const more = successor.more()
    more.chain = chain
    more.nextOfKey = nextOfKey
    if (chain.head === old) chain.head = successor
    else previousOf(chain, old).more().nextOfKey = successor
    if (chain.tail === old) chain.tail = successor
  }

  /** Forgets all of them. What was in a chain must not come back. */
  clear(): void {
    this.#chains?.clear()
    this.size = 0
  }
}

/** Chains are walked only where one handler held several records of a key: within a batch. */
function previousOf(chain: Chain, record: DeliveryRecord): DeliveryRecord {
  let at = chain.head
  while (at.extra?.nextOfKey !== record) at = at.extra?.nextOfKey as DeliveryRecord
  return at
}
