/**
 * `npm run soak:wire`: clients of all kinds at a server for an hour, and what it holds meanwhile.
 *
 *   --minutes <n>  how long (default 60)
 *   --memory       a server in memory; else one with a directory and `os`
 *   --seed <n>     of what the clients choose (default: by the time; it is printed)
 *
 * Every so often all clients stand still, the server collects its garbage and tells what it holds. The first third is
 * warm-up: logs fill, code is compiled. Through the rest a line is drawn; the test fails where heap, buffers or
 * resident memory grew along it beyond what is allowed, two standard errors in its favour, where there are more
 * connections than clients have open, more timers than at first, or where the server has logged an error.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { template } from '../batches.ts'
import { Connection } from '../connection.ts'
import { atExit } from '../process.ts'
import { createTopic, endsOf, type Topic } from '../topics.ts'
import { dropper, type Ground, producer, type Tally, transactor } from './clients.ts'
import { HEAD, line, problemsOf, type Sample } from './figures.ts'
import { Gate } from './gate.ts'
import { member } from './member.ts'
import type { Holding } from './server.ts'

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    memory: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const durationMs = Number(flags.minutes) * 60_000
if (!(durationMs > 0)) {
  console.error('usage: soak:wire [--minutes 60] [--memory] [--seed <n>]')
  process.exit(2)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const SAMPLES = 60
const MIN_INTERVAL_MS = 5_000
/** Sockets of clients that broke off are closed by then. */
const REST_MS = 500
const LOG_BYTES = 16 * 1_024 * 1_024
/** Of transactions, which are small: these logs must be full, and the index of aborted ones with them, after the warm-up. */
const LEDGER_BYTES = 1_024 * 1_024
const MEMBERS = 4
const COMMITTED = 1
const TRANSACTIONS_END_MS = 20_000

const directory = mkdtempSync(join(tmpdir(), 'odradek-soak-wire-'))
const child = fork(fileURLToPath(new URL('server.js', import.meta.url)), flags.memory ? [] : [directory], {
  execArgv: ['--expose-gc'],
})
atExit(child, () => {
  child.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})
child.on('exit', (code) => {
  console.error(`the server ended with ${code}`)
  process.exit(1)
})
const [port] = (await once(child, 'message')) as [number]

async function holding(): Promise<Holding> {
  child.send('sample')
  const [answer] = (await once(child, 'message')) as [Holding]
  return answer
}

const before = await Connection.open(port)
const keeping = (bytes: number): Record<string, string> => ({ 'retention.bytes': String(bytes) })
const tally: Tally = {
  produced: 0,
  fetched: 0,
  joins: 0,
  committed: 0,
  aborted: 0,
  abandoned: 0,
  brokenOff: 0,
}
const ground: Ground = {
  port,
  topic: await createTopic(before, 6, keeping(LOG_BYTES)),
  batch: template(1_024, Date.now()),
  ledger: await createTopic(before, 3, keeping(LEDGER_BYTES)),
  random: random(Number(flags.seed)),
  tally,
}
before.close()
const gate = new Gate()
const clients = [
  producer(ground),
  producer(ground),
  dropper(ground),
  dropper(ground),
  transactor(ground, 'soak-a'),
  transactor(ground, 'soak-b'),
  ...Array.from({ length: MEMBERS }, () => member(ground)),
]
console.error(
  `seed ${flags.seed}, ${flags.minutes} minutes, ${flags.memory ? 'in memory' : 'with a directory'}`,
)
const running = Promise.all(clients.map((step) => gate.run(step)))
running.catch((error: unknown) => {
  console.error(error)
  process.exit(1)
})

const samples: Sample[] = []
const startedAt = performance.now()
console.error(HEAD)
const intervalMs = Math.max(durationMs / SAMPLES, MIN_INTERVAL_MS)
while (performance.now() - startedAt < durationMs) {
  await sleep(intervalMs)
  await gate.close()
  await sleep(REST_MS)
  const minute = (performance.now() - startedAt) / 60_000
  const sample = { minute, holding: await holding(), open: Connection.count }
  samples.push(sample)
  console.error(line(sample))
  gate.open()
}
gate.end()
await running
console.log([HEAD, ...samples.map(line)].join('\n'))
console.log(
  Object.entries(tally)
    .map(([name, count]) => `${name} ${count}`)
    .join(', '),
)
const problems = [...(await unended(ground.ledger)), ...problemsOf(samples)]
for (const problem of problems) console.log(problem)
console.log(problems.length === 0 ? 'flat' : 'FAILED')
process.exit(problems.length === 0 ? 0 : 1)

/** All transactions have ended, so readers of what is committed come to the end. */
async function unended(topic: Topic): Promise<string[]> {
  // The one from before was at rest for so long that the server may have closed it.
  const after = await Connection.open(port)
  // What clients have left open is aborted when its time is up.
  const deadline = performance.now() + TRANSACTIONS_END_MS
  for (;;) {
    const ends = await endsOf(after, topic)
    const stable = await endsOf(after, topic, COMMITTED)
    const behind = ends.filter((end, partition) => end !== stable[partition])
    if (behind.length === 0) return []
    if (performance.now() > deadline)
      return [`${behind.length} partitions have a transaction that does not end`]
    await sleep(500)
  }
}

/** From 0 up to, not including, `below`, by a congruence: enough for choices. */
function random(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
