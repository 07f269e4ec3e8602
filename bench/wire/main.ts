/**
 * `npm run bench:wire`: the server's figures, beside Apache Kafka on the same machine; prints the tables and writes
 * docs/benchmarks-wire.md. About six minutes on a machine that does nothing else.
 *
 *   --short        only checks that everything works, on our server alone (about 20 s); never writes
 *   --alone        our server alone; never writes
 *   --only <part>  lives, loads, librdkafka or round-trips; may be repeated; never writes
 *   --no-write     leaves docs/benchmarks-wire.md alone
 *
 * Each broker is a process of its own. All of them run beside each other and are given the same work in turn, A B C D
 * A B C D …, so that a noisy minute of the machine does not fall on one of them alone. What was moved is checked:
 * offsets, counts and sums; a failed check ends the run with exit code 1. A missed figure is a line in the table.
 */
import { writeFileSync } from 'node:fs'
import os from 'node:os'
import { parseArgs } from 'node:util'
import { environment } from '../environment.ts'
import { linesOf, type Measured, outcomeOf, tablesOf, textOf } from '../report.ts'
import { root } from './built.ts'
import { type Contender, contenders } from './contenders.ts'
import { kcatVersion, rdkafkaMissing } from './librdkafka.ts'
import { PARTS, type Plan, Run } from './run.ts'

const { values: flags } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    alone: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    'no-write': { type: 'boolean', default: false },
  },
})

// The brokers are ended with this process, also by Ctrl-C.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const PLAN: Plan = flags.short
  ? {
      rounds: 1,
      turnMs: 100,
      warmMs: 0,
      lives: 1,
      restMs: 100,
      connections: 100,
      kcatBytes: 1e6,
      roundTrips: 20,
    }
  : {
      rounds: 3,
      turnMs: 1_200,
      warmMs: 1_000,
      lives: 3,
      restMs: 1_500,
      connections: 1_000,
      kcatBytes: 100e6,
      roundTrips: 500,
    }

const parts = PARTS.filter((part) => flags.only.length === 0 || flags.only.includes(part))
if (parts.length === 0) {
  console.error(`no such part; there are ${PARTS.join(', ')}`)
  process.exit(2)
}
const loadAverage = os.loadavg()[0] ?? 0
const { ours, kafka } = contenders(flags.short || flags.alone)
const peer = typeof kafka === 'string' ? undefined : kafka
const kcat = kcatVersion()
const missing = [
  ...(typeof kafka === 'string' ? [`Apache Kafka: ${kafka}.`] : []),
  ...(typeof kcat === 'string' ? [`kcat: ${kcat}.`] : []),
  ...(rdkafkaMissing() === undefined ? [] : [`Round trips by librdkafka: ${rdkafkaMissing()}.`]),
]
for (const each of missing) console.error(each)

const startedAt = performance.now()
const run = new Run(ours, peer, PLAN)
const measured: Measured[] = []
for (const part of parts) {
  console.error(`${elapsed()} ${part}`)
  for (const table of await run.part(part)) {
    const lines = linesOf(table, [run.samples])
    measured.push({ scenario: table, lines })
    console.log(textOf(table, lines))
  }
}
await run.close()
console.error(`${elapsed()} done`)
if (!flags.short && !flags['no-write'] && flags.only.length === 0 && peer !== undefined) {
  writeFileSync(new URL('docs/benchmarks-wire.md', root), document(peer))
}
process.exit(0)

function elapsed(): string {
  return `${((performance.now() - startedAt) / 1_000).toFixed(0)} s`
}

function document({ name, about }: Contender): string {
  const { machine, node, v8, versions } = environment()
  const { rounds, turnMs } = PLAN
  return `${[
    '# Benchmarks of the server',
    '',
    '<!-- Written by `npm run bench:wire`. Do not edit: change bench/wire/ and run it again. -->',
    '',
    'Run them yourself: `npm ci && npm run bench:wire` (about six minutes; Java and Maven bring Kafka, kcat is a package',
    'of the system, `npm run interop` builds node-rdkafka; what is missing is left out). Each broker is a process of its',
    'own, as anybody starts it: `odradek serve` in memory, and with a directory and `os` or `fsync`; Kafka as one node in',
    'KRaft mode, with the options of the Java machine that its own scripts give it. All run beside each other and take',
    `turns at the same work (${rounds} rounds of about ${turnMs} ms, after a round that is not counted), because absolute figures`,
    'drift with the machine. The client shares the two processors with the broker, so rates measure both; processor time',
    "is that of the broker's process alone, of all its threads, as the system counts it. What was moved is checked:",
    'offsets, counts, sums. Kafka acknowledges what its process has, as `os` does; `fsync` promises more, and is not',
    'aimed at that.',
    '',
    `- Machine: ${machine}; load average ${loadAverage.toFixed(2)} when it began`,
    `- Node ${node} (V8 ${v8}), odradek ${versions.odradek}`,
    `- ${name}, ${about}${typeof kcat === 'string' ? '' : `; kcat with librdkafka ${kcat.version}`}`,
    ...missing.map((each) => `- Missing: ${each}`),
    '',
    outcomeOf(measured),
    ...tablesOf(measured),
  ].join('\n')}\n`
}
