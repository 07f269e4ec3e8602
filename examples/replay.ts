/**
 * Replay is moving a cursor: to the start, to an offset, to a moment. Other readers do not notice. A position
 * that does not exist, or a reader that nobody knows, is refused and changes nothing.
 */
import { OdradekError, openBroker } from 'odradek'

await using broker = await openBroker()
const prices = await broker.createTopic<number>('prices')

let seen: number[] = []
await prices.subscribe((d) => void seen.push(d.value), { id: 'chart' })
let others = 0
await prices.subscribe(() => void others++, { group: 'archive' })

for (const price of [100, 101, 102]) await prices.publish(price)
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
await sleep(20)
const noon = new Date()
await sleep(20)
for (const price of [103, 104, 105]) await prices.publish(price)

async function show(what: string): Promise<void> {
  await broker.idle()
  console.log(`${what.padEnd(34)} ${seen.join(' ')}`)
  seen = []
}
await show('live')

await broker.resetOffset('prices', 'chart', 'earliest')
await show("to 'earliest'")
await broker.resetOffset('prices', 'chart', 4)
await show('to offset 4')
await broker.resetOffset('prices', 'chart', noon)
await show('to a moment, the first at or after')
await broker.resetOffset('prices', { id: 'chart' }, { 0: 5 })
await show('by partition')
console.log(`${'the group, meanwhile'.padEnd(34)} ${others} deliveries, none of them twice\n`)

for (const [reader, to] of [
  ['ghost', 'earliest'],
  ['chart', 99],
] as const) {
  try {
    await broker.resetOffset('prices', reader, to)
  } catch (error) {
    if (!(error instanceof OdradekError)) throw error
    console.log(`"${reader}" to ${to}: ${error.code}\n  ${error.message}`)
  }
}

console.log('\nLooking without a reader, offsets 1 to below 3:')
for (const { offset, value } of await broker.read('prices', 0, 1, 3)) console.log(`  ${offset}: ${value}`)
