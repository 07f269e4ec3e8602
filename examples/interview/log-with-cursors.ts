/**
 * The driver of the usual "mini-Kafka" sketch, on Odradek: one append-only log, a broadcast cursor, a group
 * that shares a cursor, a replay, and a replay of somebody unknown. See docs/interview.md.
 */
import { type Delivery, OdradekError, openBroker, type Subscriber } from 'odradek'

/** The sketch's observer: an object with one method. */
class PrintingSubscriber implements Subscriber<string> {
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  onMessage({ topic, offset, value }: Delivery<string>): void {
    console.log(`[${this.#name}] ${topic}#${offset} -> ${value}`)
  }
}

await using broker = await openBroker<{ orders: string }>()
await broker.createTopic('orders')

// Broadcast: alice has a cursor of her own and sees every order.
await broker.subscribe('orders', new PrintingSubscriber('alice'), { id: 'alice' })

// The group shares one cursor; its members take turns.
await broker.subscribe('orders', new PrintingSubscriber('worker-1'), { id: 'worker-1', group: 'shippers' })
await broker.subscribe('orders', new PrintingSubscriber('worker-2'), { id: 'worker-2', group: 'shippers' })

for (let i = 0; i < 6; i++) await broker.publish('orders', `order-${i}`)
await broker.idle() // instead of a sleep: nothing is deliverable, in flight, waiting or due

console.log('--- alice replays from 0 ---')
await broker.resetOffset('orders', 'alice', 0)
await broker.idle()

try {
  await broker.resetOffset('orders', 'ghost', 0)
} catch (error) {
  if (!(error instanceof OdradekError)) throw error
  console.log(`Rejected: ${error.message}`)
}

// What the sketch leaves open: a member's name rewinds its group, whose cursor is shared.
console.log('--- worker-1 replays from 4: the group does ---')
await broker.resetOffset('orders', 'worker-1', 4)
await broker.idle()
