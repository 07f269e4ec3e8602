/** From `publish` to the handler's first line while nothing else happens, beside a bare `setImmediate`. */
import { strict as assert } from 'node:assert'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBroker } from 'odradek/memory'
import { absolute, atMost, type Plan, type Row, type Samples, type Scenario, time } from '../scenario.ts'
import { median, quantile } from '../statistics.ts'

const TRIES = 200

async function sample(plan: Plan): Promise<Samples> {
  const broker = createBroker()
  const topic = await broker.createTopic<number>('orders')
  let arrived: (at: number) => void = () => {}
  let handled = 0
  await topic.subscribe(
    () => {
      handled++
      arrived(performance.now())
    },
    { id: 'reader' },
  )
  const publish = (resolve: (at: number) => void): void => {
    arrived = resolve
    void topic.publish(1)
  }
  const immediate = (resolve: (at: number) => void): void => {
    setImmediate(() => resolve(performance.now()))
  }
  const odradek: number[] = []
  const bare: number[] = []
  const worst: number[] = []
  for (let round = -1; round < plan.rounds; round++) {
    const published: number[] = []
    const scheduled: number[] = []
    for (let i = 0; i < TRIES; i++) {
      published.push(await elapsed(publish))
      scheduled.push(await elapsed(immediate))
    }
    if (round < 0) continue // warm-up
    odradek.push(median(published))
    bare.push(median(scheduled))
    worst.push(quantile(published, 0.99) / 1e6)
  }
  assert.equal(handled, TRIES * (plan.rounds + 1))
  await broker.close()
  return { odradek, setImmediate: bare, 'odradek, p99': worst }
}

/** Nanoseconds from `start` to what it leads to, on a loop that has just slept. */
async function elapsed(start: (resolve: (at: number) => void) => void): Promise<number> {
  await sleep(1)
  const from = performance.now()
  const to = await new Promise<number>(start)
  return (to - from) * 1e6
}

const rows: readonly Row[] = [
  time('odradek', 'setImmediate', atMost(3)),
  absolute('odradek, p99', 'ms', atMost(1)),
]

export const latency: Scenario = {
  name: 'latency',
  title: 'Publish to handler on an idle loop (time: less is better)',
  moved: '',
  rows,
  sample,
}
