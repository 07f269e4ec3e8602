/** A web page with a broker inside: publishes, fails one record once, replays, and reports what it saw. */
import { createBroker } from 'odradek/memory'

const broker = createBroker()
const letters = await broker.createTopic<string>('letters')

const delivered: string[] = []
const attempts: number[] = []
await letters.subscribe(
  (delivery) => {
    if (delivery.value === 'b') {
      attempts.push(delivery.attempt)
      if (delivery.attempt === 1) throw new Error('once')
    }
    delivered.push(delivery.value)
  },
  { id: 'reader', retry: { delayMs: 1 } },
)
for (const value of ['a', 'b', 'c']) await letters.publish(value)
await broker.idle()
const first = delivered.splice(0)

await broker.resetOffset('letters', 'reader', 'earliest')
await broker.idle()
await broker.close()

Object.assign(globalThis, { report: { delivered: first, attempts, replayed: delivered } })
