/**
 * `npm run soak`: keeps a mix of traffic up on the memory engine and watches the heap.
 *
 *   --minutes <n>  how long (default 10)
 *   --only <name>  one kind of traffic, to find out which one it was
 *   --leak         holds on to one delivery in a thousand: the negative control, which must fail
 *
 * Every few seconds the traffic pauses, the heap is collected and measured. The first third of the samples is
 * warm-up: logs fill, code is compiled. Through the rest a line is drawn, and the test fails when the heap grew
 * along it by more than `TOLERANCE_BYTES`, two standard errors of the slope in its favour. At the end every
 * workload's books must balance: nothing lost, doubled or out of order.
 */
import { parseArgs } from 'node:util'
import type { Broker, Logger } from 'odradek'
import { createBroker } from 'odradek/memory'
import { turn } from './race.ts'
import { broadcast } from './soak/broadcast.ts'
import { churn } from './soak/churn.ts'
import { dedupe } from './soak/dedupe.ts'
import { group } from './soak/group.ts'
import { telemetry } from './soak/telemetry.ts'
import type { Workload } from './soak/workload.ts'
import { trend } from './statistics.ts'

/** Less than one forgotten object per subscription that came and went, and what a compiler may still add. */
const TOLERANCE_BYTES = 1024 * 1024
const SAMPLES = 120
const MIN_INTERVAL_MS = 1_000

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    leak: { type: 'boolean', default: false },
  },
})
const durationMs = Number(flags.minutes) * 60_000
const collect = globalThis.gc
if (!(durationMs > 0) || collect === undefined) {
  console.error('usage: node --expose-gc dist/soak.js [--minutes 10] [--only <name>] [--leak]')
  process.exit(2)
}

let errors = 0
const logger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (details, message) => {
    if (errors++ < 10) console.error(message, details)
  },
}

const broker = createBroker({ logger })
const workloads: Workload[] = []
for (const [name, open] of Object.entries({ broadcast, group, telemetry, churn, dedupe })) {
  if (name.includes(flags.only)) workloads.push(await open(broker))
}
if (flags.leak) await leak(broker)

const heap: [minutes: number, bytes: number][] = []
const intervalMs = Math.max(durationMs / SAMPLES, MIN_INTERVAL_MS)
const startedAt = performance.now()
for (let elapsedMs = 0; elapsedMs < durationMs; ) {
  for (const workload of workloads) await workload.step()
  await turn()
  elapsedMs = performance.now() - startedAt
  if (elapsedMs >= (heap.length + 1) * intervalMs) await sample(collect)
}
for (const workload of workloads) await workload.settle()
await broker.close()

const watched = heap.slice(Math.floor(heap.length / 3))
const { slope, error } = trend(watched)
const minutes = (watched.at(-1)?.[0] ?? 0) - (watched[0]?.[0] ?? 0)
const grownBytes = slope * minutes
const noiseBytes = 2 * error * minutes
const published = workloads.map(({ name, published: count }) => `${name} ${count}`).join(', ')
console.log(`published: ${published}; every record accounted for; ${errors} errors logged`)
console.log(
  `heap over the last ${minutes.toFixed(1)} minutes (${watched.length} samples, ` +
    `${megabytes(Math.min(...watched.map(([, bytes]) => bytes)))} to ` +
    `${megabytes(Math.max(...watched.map(([, bytes]) => bytes)))}): ` +
    `${megabytes(grownBytes)} grown, ± ${megabytes(noiseBytes)}, ${megabytes(TOLERANCE_BYTES)} allowed`,
)
const flat = watched.length >= 10 && grownBytes - noiseBytes <= TOLERANCE_BYTES
console.log(flat && errors === 0 ? 'flat' : 'FAILED')
process.exitCode = flat && errors === 0 ? 0 : 1

/** Publishing stops while nothing else does: what is under way is bounded, and part of the noise. */
async function sample(gc: () => void): Promise<void> {
  await turn()
  gc()
  const { heapUsed, external } = process.memoryUsage()
  heap.push([(performance.now() - startedAt) / 60_000, heapUsed + external])
  const count = workloads.reduce((total, workload) => total + workload.published, 0)
  console.error(`${heap.at(-1)?.[0].toFixed(2)} min  ${megabytes(heapUsed + external)}  ${count} published`)
}

async function leak(from: Broker): Promise<void> {
  const kept: unknown[] = []
  await from.subscribe('orders', (d) => d.offset % 1_000 === 0 && kept.push(d), { id: 'hoarder' })
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(2)} MiB`
}
