/**
 * Tests without sleeping: a manual clock moves only when told to, and `settle` or `idle` says when everything that
 * can happen has happened. Thirty seconds of timeout take a millisecond, and always come in the same order.
 */
import assert from 'node:assert/strict'
import { createBroker } from 'odradek/memory'
import { ManualClock } from 'odradek/testing'

const clock = new ManualClock()
// Without jitter, a backoff of 50 ms is 50 ms.
await using broker = createBroker({ clock, random: () => 0 })
const jobs = await broker.createTopic<string>('jobs')

const log: string[] = []
await jobs.subscribe(
  (d) => {
    log.push(`${d.value} attempt ${d.attempt} at ${clock.monotonic()} ms`)
    if (d.value === 'flaky' && d.attempt < 4) throw new Error('again')
    if (d.value === 'stuck' && d.attempt === 1) return new Promise(() => {}) // never settles
    return undefined
  },
  { id: 'worker', concurrency: 4, ackTimeoutMs: 30_000 },
)

await jobs.publish('flaky')
await jobs.publish('stuck')
await clock.settle()
assert.equal(log.length, 2)

await clock.advance(50 + 100 + 200)
assert.deepEqual(log.slice(2), [
  'flaky attempt 2 at 50 ms',
  'flaky attempt 3 at 150 ms',
  'flaky attempt 4 at 350 ms',
])

await clock.advance(30_000)
assert.equal(log.at(-1), 'stuck attempt 2 at 30000 ms')
await broker.idle()

for (const line of log) console.log(line)
const { acked, nacked, expired } = broker.metrics().readers[0]?.counters ?? {}
console.log(`acked ${acked}, nacked ${nacked}, expired ${expired}, timers left ${clock.pending}`)
