/**
 * `npm run bench`: runs every scenario in fresh processes, prints the tables and writes docs/benchmarks.md.
 *
 *   --short        only checks that everything works (about 30 s); never writes
 *   --only <name>  scenarios whose name contains it; may be repeated; never writes
 *   --json         one JSON document on stdout instead of tables
 *   --no-write     leaves docs/benchmarks.md alone
 *   --large        ten times the data, where there is much of it already: minutes; never writes
 *   --cpu          processor time instead of wall time, on a machine that does other things; never writes
 *   --alternatives the shapes that were measured and not taken (bench/alternatives); never writes
 *
 * The scenarios are passed through several times, one process each time, rather than one after the other, so
 * that a noisy minute of the machine does not fall on one of them alone. A missed figure is a line in the
 * table; a failed check ends the run with exit code 1.
 */
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { environment } from './environment.ts'
import { alternatives, scenarios } from './registry.ts'
import { linesOf, markdownOf, textOf } from './report.ts'
import type { Plan, Samples, Scenario } from './scenario.ts'

const { values: flags } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
    'no-write': { type: 'boolean', default: false },
    large: { type: 'boolean', default: false },
    cpu: { type: 'boolean', default: false },
    alternatives: { type: 'boolean', default: false },
  },
})

const PROCESSES = flags.short ? 1 : 3
const clock = flags.cpu ? 'cpu' : 'wall'
const { large } = flags
const PLAN: Plan = flags.short
  ? { rounds: 2, roundMs: 10, clock, large: false }
  : { rounds: 5, roundMs: 120, clock, large }

const chosen = (flags.alternatives ? alternatives : scenarios).filter(
  ({ name }) => flags.only.length === 0 || flags.only.some((part) => name.includes(part)),
)
if (chosen.length === 0) {
  console.error(`no scenario matches; there are ${scenarios.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

/** Bytecode of contenders that wait for their turn must survive the collections in between. */
const NODE_FLAGS = ['--expose-gc', '--no-flush-bytecode']

function inFreshProcess(scenario: Scenario): Promise<Samples> {
  return new Promise((resolve, reject) => {
    const script = fileURLToPath(new URL('child.js', import.meta.url))
    const child = fork(script, [scenario.name, JSON.stringify(PLAN)], { execArgv: NODE_FLAGS })
    let samples: Samples | undefined
    child.on('message', (message) => {
      samples = message as Samples
    })
    child.on('exit', (code) => {
      if (samples !== undefined && code === 0) resolve(samples)
      else reject(new Error(`${scenario.name} failed with exit code ${code}`))
    })
  })
}

const samples = new Map<Scenario, Samples[]>(chosen.map((scenario) => [scenario, []]))
for (let pass = 1; pass <= PROCESSES; pass++) {
  for (const scenario of chosen) {
    if (pass > (scenario.processes ?? PROCESSES)) continue
    console.error(`${pass}/${PROCESSES} ${scenario.name}`)
    samples.get(scenario)?.push(await inFreshProcess(scenario))
  }
}

const measured = chosen.map((scenario) => ({
  scenario,
  lines: linesOf(scenario, samples.get(scenario) ?? []),
}))
const where = environment()
if (flags.json) {
  const lines = measured.flatMap((each) => each.lines)
  console.log(JSON.stringify({ environment: where, plan: PLAN, processes: PROCESSES, lines }, null, 2))
} else {
  for (const { scenario, lines } of measured) console.log(textOf(scenario, lines))
}
const complete = !flags.short && !large && !flags.cpu && !flags.alternatives && flags.only.length === 0
if (complete && !flags['no-write']) {
  const text = markdownOf(measured, where, { processes: PROCESSES, ...PLAN })
  writeFileSync(new URL('../../docs/benchmarks.md', import.meta.url), text)
}
