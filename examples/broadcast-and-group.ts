/**
 * One topic, two ways to read it. Broadcast: every subscriber sees every record. Group: every record goes to
 * exactly one member. Delivery moves a reader's cursor and removes nothing, so both read the same log.
 */
import { type Delivery, openBroker } from 'odradek'

await using broker = await openBroker()
const orders = await broker.createTopic<string>('orders')

const seen = new Map<string, string[]>()
/** A handler that notes what it got. Returning is the ack; handlers may run twice, so keep them idempotent. */
const noteAs = (name: string) => {
  const list: string[] = []
  seen.set(name, list)
  return (d: Delivery<string>): void => void list.push(d.value)
}

// An id makes a broadcast reader durable: it has a place of its own, which outlives the subscription.
const alice = await orders.subscribe(noteAs('alice'), { id: 'alice' })
await orders.subscribe(noteAs('bob'), { id: 'bob' })
await orders.subscribe(noteAs('worker-1'), { id: 'worker-1', group: 'shippers' })
await orders.subscribe(noteAs('worker-2'), { id: 'worker-2', group: 'shippers' })

for (let i = 0; i < 6; i++) await orders.publish(`order-${i}`)
await broker.idle()
for (const [name, values] of seen) console.log(`${name.padEnd(9)} ${values.join(' ')}`)

console.log('\nalice closes, two orders come, alice comes back and goes on where she was:')
await alice.close()
await orders.publish('order-6')
await orders.publish('order-7')
await orders.subscribe(noteAs('alice'), { id: 'alice' })
await broker.idle()
console.log(`alice     ${seen.get('alice')?.join(' ')}`)

console.log('\ncarol is new: she starts at the tail, unless she says otherwise:')
await orders.subscribe(noteAs('carol'), { id: 'carol', from: 'earliest' })
await broker.idle()
console.log(`carol     ${seen.get('carol')?.join(' ')}`)
