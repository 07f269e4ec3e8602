/**
 * What one reader was handed, as a bystander writes it down: no record twice in hand, no two of a partition or
 * key where order forbids it, first deliveries in order, attempts that never go back.
 */

import { IN_FLIGHT } from '../../src/core/delivery.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Order } from '../../src/model/options.ts'

const nameOf = ({ partition, offset }: Delivery): string => `${partition}/${offset}`

export class Book {
  readonly #order: Order
  readonly #fault: (text: string) => void
  #inHand: Delivery[] = []
  readonly #attempts = new Map<string, number>()
  readonly #furthest = new Map<string, number>()
  #replayed = false

  constructor(order: Order, fault: (text: string) => void) {
    this.#order = order
    this.#fault = fault
  }

  /** Whether it may be settled still. The one look inside: asking in any other way would settle it. */
  static #live(delivery: Delivery): boolean {
    return (delivery as unknown as { readonly state: number }).state === IN_FLIGHT
  }

  anyInHand(): Delivery | undefined {
    return this.#inHand.find((each) => Book.#live(each))
  }

  /** From now on records come again, from any attempt. */
  replayed(): void {
    this.#replayed = true
    this.#attempts.clear()
    this.#furthest.clear()
  }

  /** One hand-out: records of a batch are in hand together, by right. */
  handedOut(deliveries: readonly Delivery[]): void {
    const before = this.#inHand.filter((each) => Book.#live(each) && !deliveries.includes(each))
    for (const delivery of deliveries) this.#enter(delivery, before)
    this.#inHand = [...before, ...deliveries]
  }

  #enter(delivery: Delivery, before: readonly Delivery[]): void {
    const name = nameOf(delivery)
    for (const other of before) {
      if (nameOf(other) === name) this.#fault(`${name} is in two hands`)
      else if (other.partition === delivery.partition && this.#excludes(other, delivery)) {
        this.#fault(
          `${name} was handed out while ${nameOf(other)} was in flight, against the order by ${this.#order}`,
        )
      }
    }
    const scope = this.#scope(delivery)
    const furthest = scope === undefined ? -1 : (this.#furthest.get(scope) ?? -1)
    const first = delivery.attempt === 1 && !delivery.redelivered
    if (first && !this.#replayed && delivery.offset < furthest) {
      this.#fault(`${name} came for the first time after ${furthest}, against the order by ${this.#order}`)
    }
    if (scope !== undefined) this.#furthest.set(scope, Math.max(furthest, delivery.offset))
    if (!this.#replayed && delivery.attempt < (this.#attempts.get(name) ?? 0))
      this.#fault(`${name} lost an attempt`)
    this.#attempts.set(name, delivery.attempt)
  }

  #excludes(other: Delivery, delivery: Delivery): boolean {
    if (this.#order === 'partition') return true
    return this.#order === 'key' && delivery.key !== null && other.key === delivery.key
  }

  #scope({ partition, key }: Delivery): string | undefined {
    if (this.#order === 'partition') return String(partition)
    return this.#order === 'key' && key !== null ? `${partition} ${String(key)}` : undefined
  }
}
