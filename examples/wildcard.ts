/**
 * One subscription, many topics: `*` stands for one level of a name, `#` for the rest of it. Topics that are
 * created later join with their first record.
 */
import { openBroker } from 'odradek'

await using broker = await openBroker()
for (const name of ['orders.eu', 'orders.us', 'payments.eu']) await broker.createTopic(name)

const seen = new Map<string, string[]>()
async function listen(pattern: string): Promise<void> {
  const topics: string[] = []
  seen.set(pattern, topics)
  await broker.subscribe(pattern, (d) => void topics.push(d.topic), { id: `audit of ${pattern}` })
}
await listen('orders.*')
await listen('*.eu')
await listen('orders.#')
await listen('#')

await broker.createTopic('orders.us.texas')
await broker.createTopic('orders.jp')
// What failed for good is not what "#" asks for: name dead letters to read them.
await broker.createTopic('dlq.orders.eu')
for (const name of broker.listTopics()) await broker.publish(name, 'hello')
await broker.idle()

for (const [pattern, topics] of seen) console.log(`${pattern.padEnd(9)} ${topics.sort().join('  ')}`)
