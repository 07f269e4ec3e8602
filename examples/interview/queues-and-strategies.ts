/**
 * The other usual sketch, on Odradek: subscriptions with bounded queues, a delivery strategy per topic, acks by
 * return value, capped backoff, a dead-letter sink, unsubscribe while deliveries run. See docs/interview.md.
 */
import { type Delivery, openBroker, type Subscriber } from 'odradek'

/** From an object's `onMessage`, `true` acks, and `false` or a throw asks for another attempt. */
class Worker implements Subscriber<string> {
  readonly name: string
  readonly did: string[] = []

  constructor(name: string) {
    this.name = name
  }

  onMessage({ value, attempt }: Delivery<string>): boolean {
    const acks = value !== 'poison' || this.name !== 'sms'
    this.did.push(acks ? value : `${value} (attempt ${attempt} failed)`)
    return acks
  }
}
const show = (...workers: Worker[]): void => {
  for (const { name, did } of workers) console.log(`  ${name}: ${did.join(', ')}`)
}

await using broker = await openBroker<{ 'orders.created': string; jobs: string; metrics: string }>()

console.log('Broadcast; a poison message is retried, dead-lettered, and jams nothing:')
await broker.createTopic('orders.created')
const [mail, sms] = [new Worker('mail'), new Worker('sms')]
await broker.subscribe('orders.created', mail, { id: 'mail' })
// maxRetries 3 in the sketch are four attempts in all; 50 ms doubling up to 1,000 ms is the default backoff.
await broker.subscribe('orders.created', sms, {
  id: 'sms',
  retry: { attempts: 4, delayMs: 1, maxDelayMs: 4 },
})
for (const text of ['first', 'poison', 'last']) await broker.publish('orders.created', text)
await broker.idle()
show(mail, sms)
for (const { value, headers } of await broker.read('dlq.orders.created' as 'orders.created')) {
  console.log(`  dead letter: ${value}, ${headers.get('__dlq.errors.message')}`)
}

console.log('\nRound-robin: one of the group gets each job:')
await broker.createTopic('jobs')
const group = [new Worker('worker-1'), new Worker('worker-2')] as const
for (const worker of group) await broker.subscribe('jobs', worker, { id: worker.name, group: 'workers' })
for (const text of ['a', 'b', 'c', 'd']) await broker.publish('jobs', text)
await broker.idle()
show(...group)

console.log('\nA full queue of two: a metric is dropped and counted, publish never waits:')
await broker.createTopic('metrics')
const queue = { overflow: 'drop-newest', maxLag: { records: 2 } } as const
const gauge = new Worker('gauge')
const subscription = await broker.subscribe('metrics', gauge, { id: 'gauge', credit: 'manual', ...queue })
for (const text of ['cpu', 'memory', 'disk', 'network']) await broker.publish('metrics', text)
subscription.request(10)
await subscription.drained()
show(gauge)
console.log(`  dropped ${subscription.describe().counters.dropped}`)

console.log('\nUnsubscribed during a delivery: nothing comes after it.')
const once = await broker.subscribe(
  'jobs',
  async (d) => {
    console.log(`  leaving: ${d.value}`)
    await broker.unsubscribe('jobs', 'leaving')
  },
  { id: 'leaving', from: 'earliest' },
)
await once.closed
