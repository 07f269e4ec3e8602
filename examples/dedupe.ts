/**
 * A publisher that does not know whether its first call arrived calls again with the same id. On a topic with
 * `dedupe` the repeat is recognised and answers the position of the first; the log holds the record once.
 */
import { openBroker } from 'odradek'

await using broker = await openBroker()
const payments = await broker.createTopic<number>('payments', {
  // Ids are remembered for two minutes, and at most 100,000 of them. `dedupe: true` means the same.
  dedupe: { windowMs: 120_000, records: 100_000 },
})

const received: string[] = []
await payments.subscribe((d) => void received.push(`${d.id}: ${d.value}`), { id: 'ledger' })

console.log(await payments.publish(100, { id: 'pay-1' }))
console.log(await payments.publish(100, { id: 'pay-1' }))
console.log(await payments.publish(250, { id: 'pay-2' }))

console.log('\nTwo calls at once share one outcome:')
console.log(await Promise.all([payments.publish(70, { id: 'pay-3' }), payments.publish(70, { id: 'pay-3' })]))

console.log('\nIn a batch, and in a transaction, too:')
console.log(
  await payments.publishAll([
    { value: 5, id: 'pay-4' },
    { value: 250, id: 'pay-2' },
  ]),
)
await broker.transaction((tx) => tx.publish('payments', 5, { id: 'pay-4' }))

await broker.idle()
console.log('\nThe ledger received, and sees the id to be idempotent by:')
for (const line of received) console.log(`  ${line}`)
const { published, duplicates } = broker.metrics().topics[0] ?? {}
console.log(`${published} records, ${duplicates} duplicates`)
