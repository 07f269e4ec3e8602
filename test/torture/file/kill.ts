/**
 * Processes that are killed, over and over, on the same data directory; then one that brings everything to its end;
 * then the verdict. A trial is a kill, and the process after it, which must find everything.
 *
 *   directory ─► work ✕ work ✕ open ✕ open ✕ work ✕ … end ─► judge
 *
 * What every process is told to do follows from the seed (plans.ts); when the scheduler lets it is not ours to repeat.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { FileOptions } from '../../../src/index.ts'
import { Dice } from '../dice.ts'
import { type Built, built } from './build.ts'
import type { Orders } from './child.ts'
import { judge } from './judge.ts'
import { Annals, type Entry, type Noted } from './ledger.ts'
import { leftBy } from './left.ts'
import { type Death, lastPlan, type Plan, plansOf } from './plans.ts'
import { Report } from './report.ts'
import { STEPS } from './steps.ts'

const KiB = 1024
/** Kills of one directory, at most. */
const KILLS = 10
/** A process that takes so long hangs. */
const PATIENCE_MS = 60_000

type Ending = 'killed' | 'closed' | 'failed'

export interface KillOptions {
  readonly seed: number
  readonly trials: number
  /** Directories at once. */
  readonly jobs: number
  /** Negative control: until something was lost. */
  readonly lies?: boolean
  readonly isStopped: () => boolean
}

export async function killTrials(options: KillOptions, report: Report = new Report(STEPS)): Promise<Report> {
  const script = await built(fileURLToPath(new URL('child.ts', import.meta.url)))
  const killer = new Killer(script, options, report)
  try {
    await killer.run()
  } finally {
    await script.remove()
  }
  return report
}

class Killer {
  readonly report: Report
  readonly #script: Built
  readonly #options: KillOptions
  #begun = 0
  #directories = 0
  /** From the start of a process until it is ready. */
  #startMs = 300

  constructor(script: Built, options: KillOptions, report: Report) {
    this.report = report
    this.#script = script
    this.#options = options
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.jobs }, () => this.#work()))
  }

  get #goesOn(): boolean {
    const { trials, lies, isStopped } = this.#options
    if (isStopped() || this.#begun >= trials) return false
    return lies === true ? this.report.lost === 0 : this.report.failures < 3
  }

  async #work(): Promise<void> {
    while (this.#goesOn) {
      const seed = this.#options.seed + this.#directories++
      const kills = Math.min(KILLS, this.#options.trials - this.#begun)
      this.#begun += kills
      await this.#directory(seed, kills)
    }
  }

  async #directory(seed: number, kills: number): Promise<void> {
    const dice = new Dice(seed)
    const directory = await mkdtemp(join(tmpdir(), 'odradek-torture-'))
    const annals = new Annals()
    const files: FileOptions = {
      durability: dice.pick(['fsync', 'fsync', 'os']),
      flushMs: dice.pick([5, 50]),
      journalBytes: dice.pick([64, 128, 512]) * KiB,
      segmentBytes: dice.pick([4, 16, 256]) * KiB,
      cacheBytes: dice.pick([16, 64 * KiB]) * KiB,
    }
    const plans = plansOf(dice, this.#options.lies === true)
    let life = 0
    let before = ''
    const live = (plan: Plan): Promise<Ending> => {
      const left = leftBy(life++, annals.events, annals.facts)
      return this.#life(annals, { directory, files, left }, plan)
    }
    try {
      for (let killed = 0; killed < kills && !this.#options.isStopped(); ) {
        const ending = await live(plans.next().value as Plan)
        if (ending === 'failed') break
        if (ending !== 'killed') continue
        killed++
        this.report.trials++
        const phase = phaseOf(annals)
        this.report.note(`killed while ${phase}`)
        if (phase === OPENING && before === OPENING) this.report.note('killed while opening twice in a row')
        before = phase
      }
      await live(lastPlan(dice))
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
    this.report.add(judge(annals), `--mode kill --seed ${seed} --trials ${kills}`)
  }

  /** One process, until its end. */
  async #life(
    annals: Annals,
    place: Pick<Orders, 'directory' | 'files' | 'left'>,
    { death, ...plan }: Plan,
  ): Promise<Ending> {
    annals.begin()
    const orders: Orders = {
      ...place,
      ...plan,
      strike: death.at === 'step' ? death.strike : undefined,
      lies: this.#options.lies === true,
    }
    const began = performance.now()
    const child = spawn(process.execPath, [this.#script.path, JSON.stringify(orders)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const executioner = new Executioner(child, death, this.#startMs)
    let complaints = ''
    child.stderr?.on('data', (text) => {
      complaints += String(text)
    })
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
    lines.on('line', (line) => {
      const entry = parsed(line)
      if (entry === undefined) return
      annals.add(entry)
      this.#hear(entry, performance.now() - began)
      executioner.hear(entry)
    })
    const { code, signal } = await ended(child, lines)
    executioner.done()
    const failed = executioner.hangs || (signal === null && code !== 0)
    if (failed || complaints !== '') {
      const text = `a process of task ${orders.task} ${executioner.hangs ? 'hung' : `ended with ${code}`}: ${complaints}`
      annals.add({ fact: 'fault', text })
    }
    if (annals.events.at(-1)?.type !== 'close') annals.crash()
    return failed ? 'failed' : signal === null ? 'closed' : 'killed'
  }

  #hear(entry: Entry, ms: number): void {
    if (!('fact' in entry)) return
    if (entry.fact === 'opened') this.report.recovered(entry.ms)
    if (entry.fact === 'ready') this.#startMs = ms
    if (entry.fact === 'struck') this.report.struck(entry.step)
    if (entry.fact !== 'steps') return
    for (const step of Object.keys(entry.counts)) this.report.passed(step)
  }
}

const OPENING = 'opening'

/** What the last process was at when it died. */
function phaseOf({ facts }: Annals): string {
  const heard = new Set<string>()
  for (let i = facts.length - 1; i >= 0 && facts[i]?.fact.fact !== 'begun'; i--) {
    heard.add((facts[i] as Noted).fact.fact)
  }
  if (!heard.has('ready')) return OPENING
  return heard.has('worked') ? 'idle or closing' : 'working'
}

/** A process that is killed may be in the middle of a line. */
function parsed(line: string): Entry | undefined {
  try {
    return JSON.parse(line) as Entry
  } catch {
    return undefined
  }
}

interface End {
  readonly code: number | null
  readonly signal: string | null
}

/** The process has ended, and all that it said was read. */
async function ended(child: ChildProcess, lines: ReturnType<typeof createInterface>): Promise<End> {
  const [end] = await Promise.all([
    new Promise<End>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve({ code, signal }))
    }),
    new Promise<void>((resolve) => lines.once('close', resolve)),
  ])
  return end
}

/** Kills a process when it is time. */
class Executioner {
  readonly #child: ChildProcess
  readonly #death: Death
  readonly #timers: NodeJS.Timeout[] = []
  #lines = 0
  hangs = false

  /** `startMs`: how long a process needs to get ready. */
  constructor(child: ChildProcess, death: Death, startMs: number) {
    this.#child = child
    this.#death = death
    this.#after(PATIENCE_MS, () => {
      this.hangs = true
    })
    if (death.at === 'time') this.#after(death.share * startMs)
  }

  hear(entry: Entry): void {
    this.#lines++
    if (this.#death.at === 'line' && this.#lines === this.#death.line) this.#child.kill('SIGKILL')
    // Nothing more will come, and what is written behind may be under way.
    if ('fact' in entry && entry.fact === 'worked' && this.#death.at !== 'end') this.#after(5)
  }

  done(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }

  #after(ms: number, first: () => void = () => {}): void {
    const kill = (): void => {
      first()
      this.#child.kill('SIGKILL')
    }
    this.#timers.push(setTimeout(kill, ms))
  }
}
