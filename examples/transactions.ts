/**
 * Consume, transform, produce, all or nothing: what a transaction publishes and what it acks take effect
 * together when its function returns. A throw discards everything, and the record comes again.
 */
import { OdradekError, openBroker } from 'odradek'

await using broker = await openBroker()
const orders = await broker.createTopic<{ id: string; amount: number }>('orders')
await broker.createTopic<string>('invoices')
await broker.createTopic<string>('parcels')

await orders.subscribe(
  async (d) => {
    await broker.transaction((tx) => {
      tx.publish('invoices', `invoice for ${d.value.id}: ${d.value.amount}`)
      if (d.value.id === 'o-2' && d.attempt === 1) throw new Error('the printer is out of paper')
      tx.publish('parcels', `parcel for ${d.value.id}`)
      tx.ack(d)
    })
  },
  // By hand: the ack belongs to the transaction.
  { group: 'fulfilment', ack: 'manual', retry: { delayMs: 5 } },
)

await orders.publish({ id: 'o-1', amount: 10 })
await orders.publish({ id: 'o-2', amount: 20 })
await broker.idle()

console.log('o-2 failed half-way once; nothing of that attempt is there:')
for (const topic of ['invoices', 'parcels']) {
  for (const { offset, value } of await broker.read(topic))
    console.log(`  ${topic}/${offset}: ${String(value)}`)
}

console.log('\nA delivery that is no longer the handler’s fences the transaction:')
await broker.createTopic('late')
const outcome = new Promise<string>((resolve) => {
  void broker.subscribe(
    'late',
    async (d) => {
      await broker.resetOffset('late', 'slow', 'latest') // a replay takes the record away meanwhile
      const transaction = broker.transaction((tx) => {
        tx.publish('invoices', 'must not appear')
        tx.ack(d)
      })
      await transaction.catch((error) => resolve(error instanceof OdradekError ? error.code : String(error)))
    },
    { id: 'slow', ack: 'manual' },
  )
})
await broker.publish('late', 'x')
console.log(`  ${await outcome}, and invoices still holds ${(await broker.read('invoices')).length} records`)
