/**
 * Records in batches, for whoever writes to a database: one call, one timeout, one partition. A BatchError says
 * how far the handler came: what is before it is acked, the failed one comes again, the rest goes back unchanged.
 */
import { BatchError, openBroker } from 'odradek'

await using broker = await openBroker()
const rows = await broker.createTopic<string>('rows')

const table: string[] = []
let failures = 0
await rows.subscribe(
  async (batch) => {
    console.log(`  ${batch.length} rows: ${batch.deliveries.map((d) => `${d.value}/${d.attempt}`).join(' ')}`)
    for (const [i, d] of batch.deliveries.entries()) {
      if (d.value === 'row-2' && d.attempt === 1) {
        failures++
        throw new BatchError(i, new Error('the database hiccupped'))
      }
      table.push(d.value)
    }
  },
  // Waits up to 50 ms for a batch to fill; without `maxWaitMs` it takes what is there.
  { id: 'loader', batch: { records: 4, maxWaitMs: 50 }, retry: { delayMs: 5 } },
)

console.log('Six rows in batches of at most four, as value/attempt:')
await rows.publishAll(Array.from({ length: 6 }, (_, i) => ({ value: `row-${i}` })))
await broker.idle()
console.log(`\n${table.length} rows stored after ${failures} failure: ${table.join(' ')}`)
