/**
 * `npm run torture`: random scenes, short ones and long ones, until there were enough steps. Prints the seed
 * that repeats a failure.
 *
 *   --steps N    steps in all (default 1,000,000)
 *   --short      10,000 scenes
 *   --seed N     first seed (default: the time)
 *   --scenes N   so many scenes from that seed, whatever their steps
 *
 * `npm run torture -- --engine file`: what becomes of a data directory, which is told in file/main.ts.
 * `npm run torture -- --server`: a server under fire, which is told in server/main.ts.
 * `npm run torture -- --many`: requests that name very many things, which is told in server/many.ts.
 * `npm run torture -- --slow`: thousands of clients that do nothing, which is told in server/slow-clients.ts.
 * `npm run torture -- --wire`: broken frames of Kafka's protocol, which is told in wire/main.ts.
 *
 * Progress goes to standard error. Exit code 0: nothing found; 1: faults, with their seeds; 130: Ctrl-C.
 */
import process from 'node:process'
import { parseArgs } from 'node:util'
import { playScene, stepsOf } from './scene.ts'

const { values } = parseArgs({
  options: {
    steps: { type: 'string' },
    seed: { type: 'string' },
    scenes: { type: 'string' },
    short: { type: 'boolean', default: false },
    engine: { type: 'string', default: 'memory' },
    mode: { type: 'string', default: 'all' },
    trials: { type: 'string' },
    wire: { type: 'boolean', default: false },
    server: { type: 'boolean', default: false },
    frames: { type: 'string' },
    slow: { type: 'boolean', default: false },
    many: { type: 'boolean', default: false },
    connections: { type: 'string' },
  },
})

function whole(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  if (/^\d+$/.test(text)) return Number(text)
  process.stderr.write(`--${name} takes a whole number, got "${text}"\n`)
  process.exit(2)
}

const wanted = whole('steps', values.steps, values.short ? Number.POSITIVE_INFINITY : 1_000_000)
const first = whole('seed', values.seed, Date.now() % 2 ** 31)
const scenes = whole('scenes', values.scenes, values.short ? 10_000 : Number.POSITIVE_INFINITY)
/** Faults shown; more of them teach no more. */
const SHOWN = 10

let steps = 0
let played = 0
let failed = 0
let stopped = false

process.once('SIGINT', () => {
  stopped = true
})
process.on('unhandledRejection', (error) => {
  process.stderr.write(`unhandled rejection in seed ${first + played}: ${String(error)}\n`)
  process.exit(1)
})

function report(): void {
  process.stdout.write(`seed ${first}, ${played} scenes, ${steps} steps, ${failed} with faults\n`)
}

async function playScenes(): Promise<void> {
  let told = performance.now()
  while (!stopped && steps < wanted && played < scenes && failed < SHOWN) {
    const seed = first + played
    const length = stepsOf(seed)
    const faults = await playScene(seed, length)
    played++
    steps += length
    if (faults.length > 0) {
      failed++
      process.stdout.write(`seed ${seed}: ${faults.slice(0, 3).join('\n  ')}\n`)
      process.stdout.write(`  again: npm run torture -- --seed ${seed} --scenes 1\n`)
    }
    if (performance.now() - told > 5_000) {
      told = performance.now()
      process.stderr.write(`${played} scenes, ${steps} steps, ${failed} with faults\n`)
    }
  }
  report()
}

async function tortureDirectories(): Promise<void> {
  // Only here: the mutants of the scenes do without it.
  const { tortureFiles } = await import('./file/main.ts')
  const trials = values.trials === undefined ? undefined : whole('trials', values.trials, 0)
  const { mode, short } = values
  if (!(await tortureFiles({ seed: first, mode, trials, short, isStopped: () => stopped }))) failed++
}

async function tortureFrames(): Promise<void> {
  const { tortureWire } = await import('./wire/main.ts')
  const frames = whole('frames', values.frames, values.short ? 100_000 : 1_000_000)
  if (!(await tortureWire({ seed: first, frames, isStopped: () => stopped }))) failed++
}

async function tortureClients(): Promise<void> {
  const { tortureServer } = await import('./server/main.ts')
  const frames = whole('frames', values.frames, values.short ? 50_000 : 1_000_000)
  const trials = whole('trials', values.trials, Number.POSITIVE_INFINITY)
  if (!(await tortureServer({ seed: first, frames, trials, isStopped: () => stopped }))) failed++
}

async function tortureMany(): Promise<void> {
  const { tortureWithMany } = await import('./server/many.ts')
  if (!(await tortureWithMany(whole('frames', values.frames, 100_000)))) failed++
}

async function tortureSlow(): Promise<void> {
  const { tortureSlowly } = await import('./server/slow-clients.ts')
  if (!(await tortureSlowly(whole('connections', values.connections, 5_000)))) failed++
}

if (values.slow) await tortureSlow()
else if (values.many) await tortureMany()
else if (values.server) await tortureClients()
else if (values.wire) await tortureFrames()
else if (values.engine === 'file') await tortureDirectories()
else await playScenes()
process.exitCode = stopped ? 130 : failed > 0 ? 1 : 0
