/**
 * Round trips of librdkafka by node-rdkafka, in a process of its own: `rdkafka-child <package> <bootstrap> <topic> <count>`.
 * Prints how many milliseconds each took. The first ones, in which a consumer finds its place, are not told.
 */
import { once } from 'node:events'
import { createRequire } from 'node:module'

interface Client extends NodeJS.EventEmitter {
  connect(): void
  disconnect(done: () => void): void
}

interface Producer extends Client {
  produce(topic: string, partition: number, value: Buffer): void
  setPollInterval(intervalMs: number): void
}

interface Consumer extends Client {
  assign(places: readonly { topic: string; partition: number; offset: number }[]): void
  consume(): void
}

interface Rdkafka {
  readonly Producer: new (settings: object) => Producer
  readonly KafkaConsumer: new (settings: object, topicSettings: object) => Consumer
}

const WARM = 50

const [location, bootstrap, topic, amount] = process.argv.slice(2) as [string, string, string, string]
const rdkafka = createRequire(import.meta.url)(location) as Rdkafka
const common = { 'metadata.broker.list': bootstrap }

const producer = new rdkafka.Producer({ ...common, 'queue.buffering.max.ms': 0 })
const consumer = new rdkafka.KafkaConsumer(
  { ...common, 'group.id': `bench-${process.pid}`, 'enable.auto.commit': false },
  { 'auto.offset.reset': 'earliest' },
)
for (const client of [producer, consumer]) {
  client.on('event.error', (error) => console.error(error))
  client.connect()
  await once(client, 'ready')
}
producer.setPollInterval(100)
consumer.assign([{ topic, partition: 0, offset: 0 }])

const took: number[] = []
let sent = 0
let sentAt = 0
const total = Number(amount) + WARM
const done = new Promise<void>((resolve, reject) => {
  consumer.on('data', ({ offset, value }: { offset: number; value: Buffer }) => {
    took.push(performance.now() - sentAt)
    if (offset !== sent || value.toString() !== String(sent))
      reject(new Error(`record ${sent} is not the one`))
    sent++
    if (sent === total) resolve()
    // The consumer asks for more before there is more.
    else setTimeout(send, 2)
  })
})
function send(): void {
  sentAt = performance.now()
  producer.produce(topic, 0, Buffer.from(String(sent)))
}
consumer.consume()
send()
await done
process.stdout.write(JSON.stringify(took.slice(WARM)), () => process.exit(0))
