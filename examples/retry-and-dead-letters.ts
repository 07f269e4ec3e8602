/**
 * A handler that throws gets the record again, after a pause that doubles; when its attempts are used up, the
 * record becomes a dead letter and the reader goes on. Once the cause is mended, `redrive` sends it back.
 */
import { openBroker } from 'odradek'

interface Payment {
  readonly card: string
  readonly amount: number
}

await using broker = await openBroker()
const payments = await broker.createTopic<Payment>('payments')

const ledger: string[] = []
let gatewayKnowsAmex = false
await payments.subscribe(
  (d) => {
    const { card, amount } = d.value
    console.log(`  ${card} ${amount}, attempt ${d.attempt}`)
    if (card === 'amex' && !gatewayKnowsAmex) throw new Error('the gateway does not take amex')
  },
  { id: 'charge', retry: { attempts: 3, delayMs: 5 } },
)
await payments.subscribe((d) => void ledger.push(`${d.value.card} ${d.value.amount}`), { id: 'ledger' })

broker.on('deadLetter', ({ offset, reader, attempts, reason }) => {
  console.log(
    `  event: offset ${offset} failed for good at "${reader}" after ${attempts} attempts: ${reason}`,
  )
})

console.log('Three payments to charge:')
await payments.publish({ card: 'visa', amount: 10 })
await payments.publish({ card: 'amex', amount: 20 })
await payments.publish({ card: 'visa', amount: 30 })
await broker.idle()
console.log(`The ledger, a reader of its own, has ${ledger.join(', ')}`)

console.log('\nThe dead letter, an ordinary record of an ordinary topic:')
for (const { value, headers } of await broker.read('dlq.payments')) {
  console.log(`  ${JSON.stringify(value)}`)
  for (const [name, text] of headers) if (name.startsWith('__dlq.')) console.log(`  ${name}: ${String(text)}`)
}

console.log('\nMended and redriven. Only the reader that failed gets the copy; the ledger has it already:')
gatewayKnowsAmex = true
const { redriven } = await broker.redrive('dlq.payments')
await broker.idle()
console.log(`  ${redriven} sent back; the ledger still has ${ledger.length} payments`)

console.log('\nA letter that was sent back is marked, so a second redrive finds nothing to do:')
console.log(`  ${JSON.stringify(await broker.redrive('dlq.payments'))}`)
