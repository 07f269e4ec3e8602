/**
 * Order by key: many records in flight at once, but never two of the same key, and never out of order. A
 * record that fails holds back the later records of its own key, and nothing else.
 */
import { openBroker } from 'odradek'

await using broker = await openBroker()
const accounts = await broker.createTopic<string>('accounts')

const log: string[] = []
await accounts.subscribe(
  async (d) => {
    // Anna's first step fails once; the retry comes 200 ms later.
    if (d.value === 'anna opens' && d.attempt === 1) {
      log.push('anna opens: failed, comes again')
      throw new Error('try again')
    }
    log.push(d.value)
  },
  // Up to 8 at once. `order: 'key'` is the default for groups and for concurrency above 1.
  { id: 'ledger', concurrency: 8, order: 'key', retry: { delayMs: 200 } },
)

const steps = ['opens', 'deposits', 'withdraws']
await accounts.publishAll(
  steps.flatMap((step) => ['anna', 'boris'].map((who) => ({ value: `${who} ${step}`, key: who }))),
)
await broker.idle()

console.log('As handled:')
for (const line of log) console.log(`  ${line}`)

const order = (who: string) => log.filter((line) => line.startsWith(who) && !line.includes(':')).join(', ')
console.log('\nPer key, as published:')
console.log(`  ${order('anna')}`)
console.log(`  ${order('boris')}`)
