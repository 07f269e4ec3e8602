/**
 * Processes that are killed, over and over, on the same data directory; then one that brings everything to its end;
 * then the verdict. A trial is a kill, and the process after it, which must find everything.
 *
 *   directory ─► work ✕ work ✕ open ✕ open ✕ work ✕ … end ─► judge
 *
 * The seed decides what every process is told to do, and how it is to die; when the scheduler lets it is not ours to
 * repeat.
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
import { Report } from './report.ts'
import { STEPS, type Strike } from './steps.ts'

const KiB = 1024
/** Kills of one directory, at most. */
const KILLS = 10
/** A process that takes so long hangs. */
const PATIENCE_MS = 60_000
/** Whoever has not said so much by then works too fast to be killed at a line. */
const LINES = 600

/** How a process is to end. */
type Death =
  /** When so many lines of it were read. */
  | { readonly at: 'line'; readonly line: number }
  /** So long after its start. */
  | { readonly at: 'time'; readonly ms: number }
  /** By itself, at a step. */
  | { readonly at: 'step'; readonly strike: Strike }
  /** It may live. */
  | { readonly at: 'end' }

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
  /** The steps that processes come to, and how often the last one that told did. */
  readonly #typical = new Map<string, number>()
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
      journalBytes: dice.pick([24, 64, 512]) * KiB,
      segmentBytes: dice.pick([4, 16, 256]) * KiB,
      cacheBytes: dice.pick([16, 64 * KiB]) * KiB,
    }
    let life = 0
    let before = ''
    try {
      for (let killed = 0; killed < kills && !this.#options.isStopped(); life++) {
        const task = dice.chance(0.25) ? 'close' : 'work'
        const death = this.#death(dice, isTorn(annals))
        const ended = await this.#life(
          annals,
          { ...this.#orders(annals, directory, life, dice), files, task },
          death,
        )
        if (ended === 'failed') break
        if (ended !== 'killed') continue
        killed++
        this.report.trials++
        const phase = phaseOf(annals)
        this.report.note(`killed while ${phase}`)
        if (phase === OPENING && before === OPENING) this.report.note('killed while opening twice in a row')
        before = phase
      }
      const last = { ...this.#orders(annals, directory, life, dice), files, task: 'end' } as const
      await this.#life(annals, last, { at: 'end' })
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
    const verdict = judge(annals)
    this.report.add(verdict, `--seed ${seed} --trials ${kills}`)
  }

  #orders(annals: Annals, directory: string, life: number, dice: Dice): Omit<Orders, 'task' | 'files'> {
    return {
      directory,
      seed: dice.below(2 ** 31),
      left: leftBy(life, annals.events, annals.facts),
      steps: 20 + dice.below(100),
      strike: undefined,
      lies: this.#options.lies === true,
    }
  }

  /** `torn`: the process before left half a group. */
  #death(dice: Dice, torn: boolean): Death {
    const x = dice.share()
    if (this.#options.lies || x < 0.35) return { at: 'line', line: 10 + dice.below(LINES) }
    if (x < 0.45) return { at: 'time', ms: dice.share() * this.#startMs * 1.2 }
    if (x < 0.5) return this.#strike(dice, 'write journal', ['torn'])
    const known = dice.chance(0.8) ? [...this.#typical.keys()] : STEPS
    const rare = STEPS.filter((step) => step.endsWith('torn'))
    const step = this.report.leastStruck(dice, torn ? rare : known.length > 0 ? known : STEPS)
    return this.#strike(
      dice,
      step,
      step.startsWith('write') ? ['before', 'after', 'torn'] : ['before', 'after'],
    )
  }

  #strike(dice: Dice, step: string, ways: readonly Strike['when'][]): Death {
    // Often right at the start, which is in recovery.
    const often = dice.chance(0.4) ? 2 : (this.#typical.get(step) ?? 1)
    return { at: 'step', strike: { step, nth: 1 + dice.below(Math.max(1, often)), when: dice.pick(ways) } }
  }

  /** One process, until its end. */
  async #life(annals: Annals, orders: Orders, death: Death): Promise<'killed' | 'closed' | 'failed'> {
    annals.begin()
    const strike = death.at === 'step' ? death.strike : undefined
    const began = performance.now()
    const child = spawn(process.execPath, [this.#script.path, JSON.stringify({ ...orders, strike })], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const executioner = new Executioner(child, death)
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
    for (const [step, count] of Object.entries(entry.counts)) {
      this.#typical.set(step, count)
      this.report.passed(step)
    }
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

/** Whether the last process died in the middle of writing a group. */
function isTorn({ facts }: Annals): boolean {
  const { fact } = facts.at(-1) ?? {}
  return fact?.fact === 'struck' && fact.step === 'write journal (torn)'
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

  constructor(child: ChildProcess, death: Death) {
    this.#child = child
    this.#death = death
    this.#after(PATIENCE_MS, () => {
      this.hangs = true
    })
    if (death.at === 'time') this.#after(death.ms)
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
