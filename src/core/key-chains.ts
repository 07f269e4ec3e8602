/**
 * Order by key: which unsettled records share a key, oldest first. Only the head of a chain may be handed
 * out; the others are held, and nothing else is.
 *
 *   'alice' → D7 ─► D12 ─► D30        D7 in flight or retrying, D12 and D30 held
 *   'bob'   → D9
 *
 * A record that settles while its handler is still on the stack never gets here, so the common
 * synchronous delivery pays one size check.
 */
import { type Key, keyIdentity } from '../model/record.ts'
import type { DeliveryRecord } from './delivery.ts'

interface Chain {
  head: DeliveryRecord
  tail: DeliveryRecord
}

export class KeyChains {
  readonly #chains = new Map<string, Chain>()
  /** Keys with an unsettled record. A field, since it is read for every record. */
  size: number = 0

  /** The newest unsettled record of this key. */
  last(key: Key): DeliveryRecord | undefined {
    return this.#chains.get(keyIdentity(key))?.tail
  }

  /** Appends an unsettled record; keyless ones are free. */
  add(record: DeliveryRecord): void {
    const key = record.key
    if (key === null) return
    const identity = keyIdentity(key)
    const chain = this.#chains.get(identity)
    if (chain === undefined) {
      this.#chains.set(identity, { head: record, tail: record })
      this.size++
      return
    }
    chain.tail.more().nextOfKey = record
    chain.tail = record
  }

  /** Whether an earlier record of the same key is unsettled. */
  isBehind(record: DeliveryRecord): boolean {
    const key = record.key
    if (key === null || this.size === 0) return false
    const chain = this.#chains.get(keyIdentity(key))
    return chain !== undefined && chain.head !== record
  }

  /** A settled record leaves its chain; answers the record that is now the oldest, when that changed. */
  remove(record: DeliveryRecord): DeliveryRecord | undefined {
    const key = record.key
    if (key === null || this.size === 0) return undefined
    const identity = keyIdentity(key)
    const chain = this.#chains.get(identity)
    if (chain === undefined) return undefined
    const next = record.extra?.nextOfKey ?? null
    if (chain.head === record) {
      if (next === null) {
        this.#chains.delete(identity)
        this.size--
        return undefined
      }
      chain.head = next
      return next
    }
    const before = previousOf(chain.head, record)
    if (before !== undefined) {
      before.more().nextOfKey = next
      if (chain.tail === record) chain.tail = before
    }
    return undefined
  }

  /** A successor takes its predecessor's place. */
  replace(old: DeliveryRecord, successor: DeliveryRecord): void {
    const key = old.key
    if (key === null || this.size === 0) return
    const chain = this.#chains.get(keyIdentity(key))
    if (chain === undefined) return
    const next = old.extra?.nextOfKey ?? null
    if (chain.head === old) chain.head = successor
    else {
      const before = previousOf(chain.head, old)
      if (before === undefined) return
      before.more().nextOfKey = successor
    }
    if (next !== null) successor.more().nextOfKey = next
    if (chain.tail === old) chain.tail = successor
  }

  clear(): void {
    this.#chains.clear()
    this.size = 0
  }
}

/** Chains are walked only where one handler held several records of a key: within a batch. */
function previousOf(head: DeliveryRecord, record: DeliveryRecord): DeliveryRecord | undefined {
  for (let at: DeliveryRecord | null = head; at !== null; at = at.extra?.nextOfKey ?? null) {
    if (at.extra?.nextOfKey === record) return at
  }
  return undefined
}
