/**
 * A slow reader and a log of four records. What happens when it is full is the reader's to say, per
 * subscription: `wait` makes publishers wait, `drop-oldest` makes the reader skip. Memory is bounded in both.
 */
import { type Delivery, openBroker } from 'odradek'

await using broker = await openBroker()
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
const slowly =
  (into: number[]) =>
  async (d: Delivery<number>): Promise<void> => {
    await sleep(5)
    into.push(d.value)
  }

// ── orders: nothing may be lost, so the publisher is slowed down ────────────────────────────────
const orders = await broker.createTopic<number>('orders', { retention: { records: 4 } })
broker.on('pressure', ({ topic }) => console.log(`  event: pressure on "${topic}", slow down if you can`))
broker.on('drain', ({ topic }) => console.log(`  event: drain of "${topic}", go on`))

const shipped: number[] = []
const shipper = await orders.subscribe(slowly(shipped), { id: 'shipper', overflow: 'wait' })
console.log('wait: ten orders through a log of four')
let now = 0
while (orders.tryPublish(now) !== undefined) now++
console.log(`  ${now} fitted at once, then tryPublish answered undefined; publish waits for room`)
for (let i = now; i < 10; i++) await orders.publish(i)
await shipper.drained()
await broker.idle()
console.log(`  shipped ${shipped.join(' ')}, dropped ${shipper.describe().counters.dropped}`)

// ── temperatures: the newest matter, the publisher never waits ──────────────────────────────────
const temperatures = await broker.createTopic<number>('temperatures', { retention: { records: 4 } })
broker.on('dropped', ({ reader, count, reason }) => {
  console.log(`  event: "${reader}" missed ${count} records by ${reason}`)
})
const shown: number[] = []
const display = await temperatures.subscribe(slowly(shown), { id: 'display', overflow: 'drop-oldest' })
console.log('\ndrop-oldest: ten temperatures through a log of four')
await temperatures.publish(0)
await sleep(0) // the display is busy with the first one
for (let i = 1; i < 10; i++) temperatures.tryPublish(i)
await display.drained()
await broker.idle()
console.log(`  shown ${shown.join(' ')}, dropped ${display.describe().counters.dropped}`)
