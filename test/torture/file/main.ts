/**
 * `npm run torture -- --engine file`: the promises of the file engine, on whole brokers.
 *
 *   kill     processes that are killed with SIGKILL, at any moment and at every step, also while they recover
 *   power    power losses on a simulated disk, at any operation, also while they recover
 *   faults   every operation of the disk fails once, in each way it can; every byte of the files is turned
 *
 * Each with a control that must fail: a journal that says too early that it was written, a disk that skips a sync.
 *
 *   --mode M     kill, power, faults, or all (default)
 *   --trials N   of kill, and of power for each durability (default 1,000; --short: 200 and 150)
 *   --short      what CI runs: fewer trials, and of faults a sample
 *   --seed N     first seed (default: the time)
 *
 * Progress goes to standard error.
 */
import { availableParallelism } from 'node:os'
import process from 'node:process'
import { faultTrials, fullTrials } from './faults.ts'
import { killTrials } from './kill.ts'
import { powerTrials } from './power.ts'
import { Report } from './report.ts'
import { STEPS } from './steps.ts'
import { turnTrials } from './turns.ts'

export interface TortureOptions {
  readonly seed: number
  readonly mode: string
  readonly trials: number | undefined
  readonly short: boolean
  readonly isStopped: () => boolean
}

/** A control that loses nothing shows that its judge sees nothing. */
const CONTROL_TRIALS = 300

/** Answers whether all is well. */
export async function tortureFiles(options: TortureOptions): Promise<boolean> {
  const { mode } = options
  process.stdout.write(`seed ${options.seed}, mode ${mode}\n`)
  const runs = {
    kill: [kills, killControl],
    power: [powers, powerControls],
    faults: [faults],
  }
  if (mode !== 'all' && !(mode in runs)) {
    process.stdout.write(`--mode is one of ${Object.keys(runs).join(', ')} and all, not ${mode}\n`)
    return false
  }
  let well = true
  for (const [name, steps] of Object.entries(runs)) {
    if (mode !== 'all' && mode !== name) continue
    for (const step of steps) well = (await step(options)) && well
  }
  return well
}

/** Runs trials, says on standard error how far they are, and at the end what came of them. */
async function told(
  title: string,
  run: (report: Report) => Promise<Report>,
  report: Report = new Report(),
): Promise<Report> {
  const progress = setInterval(() => {
    process.stderr.write(`${title}: ${report.trials} trials, ${report.failures} with faults\n`)
  }, 10_000)
  await run(report).finally(() => clearInterval(progress))
  process.stdout.write(`${report.lines(title).join('\n')}\n`)
  return report
}

async function kills({ seed, trials, short, isStopped }: TortureOptions): Promise<boolean> {
  const wanted = trials ?? (short ? 200 : 1_000)
  const jobs = Math.max(2, availableParallelism())
  const report = await told(
    'kill',
    (each) => killTrials({ seed, trials: wanted, jobs, isStopped }, each),
    new Report(STEPS),
  )
  const { untouched, nameless, strikes } = report
  const struck = strikes.size - untouched.length
  process.stdout.write(
    `  died at ${struck} of ${strikes.size} steps by name${untouched.length > 0 ? `, not at: ${untouched.join(', ')}` : ''}\n`,
  )
  for (const step of nameless)
    process.stdout.write(`  FAULT there is a step that has no name in steps.ts: ${step}\n`)
  return (
    report.failures === 0 &&
    nameless.length === 0 &&
    (wanted < 1_000 || isStopped() || untouched.length === 0)
  )
}

async function killControl({ seed, isStopped }: TortureOptions): Promise<boolean> {
  const control = await killTrials({ seed, trials: CONTROL_TRIALS, jobs: 2, lies: true, isStopped })
  return lost('a journal that acknowledges before it writes', control, isStopped)
}

async function powers({ seed, trials, short, isStopped }: TortureOptions): Promise<boolean> {
  const wanted = trials ?? (short ? 150 : 1_000)
  let well = true
  for (const durability of ['fsync', 'os'] as const) {
    const run = (each: Report): Promise<Report> =>
      powerTrials({ seed, trials: wanted, durability, isStopped }, each)
    const report = await told(`power loss, ${durability}`, run)
    well = well && report.failures === 0
  }
  return well
}

async function powerControls({ seed, isStopped }: TortureOptions): Promise<boolean> {
  let well = true
  for (const [name, disk] of [
    ['a disk that skips syncs of files', { missingSync: true }],
    ['a disk that skips syncs of directories', { missingDirectorySync: true }],
  ] as const) {
    const trials = CONTROL_TRIALS
    const control = await powerTrials({ seed, trials, durability: 'fsync', disk, untilLost: true, isStopped })
    well = lost(name, control, isStopped) && well
  }
  return well
}

function lost(name: string, { lost: count, trials }: Report, isStopped: () => boolean): boolean {
  if (isStopped()) return true
  const well = count > 0
  process.stdout.write(
    well
      ? `  control: ${name} lost ${count} in ${trials} trials, as it must\n`
      : `  FAULT control: ${name} lost nothing in ${trials} trials; it must\n`,
  )
  return well
}

async function faults({ seed, short, isStopped }: TortureOptions): Promise<boolean> {
  const reports = [
    await told('failing operations', (report) =>
      faultTrials({ seed, share: short ? 0.1 : 1, isStopped }, report),
    ),
    await told('full for a while', (report) =>
      fullTrials({ seed, trials: short ? 30 : 300, isStopped }, report),
    ),
    await told('turned bytes', (report) => turnTrials({ seed, share: short ? 0.04 : 1, isStopped }, report)),
  ]
  return reports.every(({ failures }) => failures === 0)
}
