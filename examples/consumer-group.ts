/**
 * A consumer group: whole partitions go to members, as in Kafka. Every change of membership starts a new
 * generation; `sticky` moves as few partitions as it can. Order is kept per partition, also across a move.
 */
import { type Delivery, openBroker } from 'odradek'

await using broker = await openBroker()
const orders = await broker.createTopic<string>('orders', { partitions: 4 })

broker.on('rebalance', ({ generation, assignment }) => {
  const owned = Object.entries(assignment).map(
    ([member, list]) => `${member} [${list.map(({ partition }) => partition).join(' ')}]`,
  )
  console.log(`  generation ${generation}: ${owned.join('  ')}`)
})

const handledBy = new Map<string, number>()
const work =
  (name: string) =>
  (_: Delivery<string>): void =>
    void handledBy.set(name, (handledBy.get(name) ?? 0) + 1)
const join = (name: string) =>
  orders.subscribe(work(name), { id: name, group: 'billing', assignment: 'sticky' })

async function publishForty(): Promise<void> {
  handledBy.clear()
  for (let i = 0; i < 40; i++) await orders.publish(`order ${i}`, { partition: i % 4 })
  await broker.idle()
  const counts = [...handledBy].map(([name, count]) => `${name} ${count}`).sort()
  console.log(`  forty orders: ${counts.join(', ')}`)
}

console.log('anna joins, then boris:')
await join('anna')
const boris = await join('boris')
await publishForty()

console.log('\nchen joins:')
await join('chen')
await publishForty()

console.log('\nboris leaves:')
await boris.close()
await publishForty()

const { cursors } = broker.describeGroup('billing')
console.log('\nWhere the group is:')
for (const { partition, owner, committed, lag } of cursors) {
  console.log(`  partition ${partition}: ${owner}, committed ${committed}, lag ${lag}`)
}
