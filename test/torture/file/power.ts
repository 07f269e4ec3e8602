/**
 * Power loss, in one process: whole brokers on a simulated disk that forgets whatever it was not told to keep, at any
 * operation, also while they recover, also again and again on the same disk. A trial is a crash, and the process after it.
 *
 *   `fsync`   nothing that was acknowledged is lost: one history over all lives, judged at the end
 *   `os`      what is lost is a suffix of everything, at most `flushMs` old: each life against what is left of it
 */
import type { FileEngineOptions } from '../../../src/log/file/file-engine.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { type CrashOptions, type Fault, SimFs, type SimOptions } from '../../support/sim-fs.ts'
import { Dice } from '../dice.ts'
import { Crew } from './crew.ts'
import { judge, type Verdict } from './judge.ts'
import { Ledger } from './ledger.ts'
import { type Left, leftBy, NOTHING_LEFT } from './left.ts'
import { createTopics, Load, type Surroundings } from './load.ts'
import { look, readLetters } from './look.ts'
import { drive, openOn } from './machine.ts'
import { Remains } from './remains.ts'
import { Report } from './report.ts'
import { watchStores } from './watch.ts'

const KiB = 1024
/** Within so many operations of the disk a life ends: while it recovers, soon after, or well under way. */
const SPANS = [60, 300, 900]
const PUBLISHERS = 3

export interface PowerOptions {
  readonly seed: number
  readonly trials: number
  readonly durability?: 'fsync' | 'os'
  /** Negative controls. */
  readonly disk?: Pick<SimOptions, 'missingSync' | 'missingDirectorySync'>
  /** Ends it as soon as something was lost. */
  readonly untilLost?: boolean
  readonly isStopped: () => boolean
}

export async function powerTrials(options: PowerOptions, report = new Report()): Promise<Report> {
  for (let seed = options.seed; report.trials < options.trials && !options.isStopped(); seed++) {
    const disk = new Disk(seed, options)
    const verdict = await disk.torture()
    report.trials += disk.crashes
    report.add(verdict, `--mode power --seed ${seed} --trials 1`)
    if (options.untilLost === true ? report.lost > 0 : report.failures >= 3) break
  }
  return report
}

/** One disk, and the lives on it. */
class Disk {
  crashes = 0
  readonly #dice: Dice
  readonly #files: FileEngineOptions & { readonly flushMs: number }
  #clock = new ManualClock()
  #fs: SimFs
  #ledger: Ledger
  /** `os`: the verdicts of lives that are over. */
  readonly #verdicts: Verdict[] = []
  readonly #remains = new Remains()
  #left: Left = NOTHING_LEFT

  constructor(seed: number, { durability, disk = {} }: PowerOptions) {
    const dice = new Dice(seed)
    this.#dice = dice
    this.#files = {
      durability: durability ?? dice.pick(['fsync', 'fsync', 'os']),
      flushMs: dice.pick([5, 20, 100]),
      journalBytes: dice.pick([16, 24, 64]) * KiB,
      segmentBytes: dice.pick([2, 8, 64]) * KiB,
      cacheBytes: dice.pick([8, 64 * KiB]) * KiB,
    }
    this.#fs = new SimFs({ seed, clock: this.#clock, turns: 1 + dice.below(3), ...disk })
    this.#ledger = this.#newLedger()
  }

  get #forgets(): boolean {
    return this.#files.durability === 'os'
  }

  #newLedger(): Ledger {
    return new Ledger((entry) => this.#remains.told(entry, this.#clock.monotonic()))
  }

  async torture(): Promise<Verdict> {
    const lives = 2 + this.#dice.below(4)
    for (let life = 0; life < lives; life++) {
      await this.#life(life, 'work')
      this.#crash()
    }
    await this.#life(lives, 'end')
    this.#crash()
    await this.#life(lives + 1, 'look')
    this.#verdicts.push(judge({ events: this.#ledger.history.events, facts: this.#ledger.facts }))
    return sumOf(this.#verdicts)
  }

  #crash(): void {
    const { history } = this.#ledger
    if (history.events.at(-1)?.type !== 'close') history.crash()
    const clock = new ManualClock({ startMs: this.#clock.now() + 10 })
    const crashedMs = this.#clock.monotonic()
    const dice = this.#dice
    const options: CrashOptions = { seed: dice.below(2 ** 31), clock }
    const powerIsLost = dice.chance(0.85)
    this.#fs = powerIsLost ? this.#fs.crash(options) : this.#fs.kill(options)
    if (this.#forgets) this.#remains.crashed(crashedMs, powerIsLost ? this.#files.flushMs : 0)
    this.#clock = clock
    this.crashes++
  }

  /** One process on the disk, until it is done or the power is gone. */
  async #life(life: number, task: 'work' | 'end' | 'look'): Promise<void> {
    const fs = this.#fs
    if (task === 'work') fs.onOperation = this.#deathAt(this.#dice.pick(SPANS))
    this.#left = leftBy(life, this.#ledger.history.events, this.#ledger.facts)
    const living = this.#live(fs, task)
    living.catch((error: unknown) => {
      this.#ledger.fault(`the process failed: ${error instanceof Error ? error.stack : String(error)}`)
    })
    const done = await drive(this.#clock, living, () => fs.halted)
    if (!done && !fs.halted) this.#ledger.fault(`a process of task ${task} hangs`)
  }

  #deathAt(most: number): SimFs['onOperation'] {
    const at = 1 + this.#dice.below(most)
    const fault: Fault = { halt: this.#dice.pick(['before', 'after']) }
    return (_operation, _path, ordinal) => (ordinal === at ? fault : undefined)
  }

  async #live(fs: SimFs, task: 'work' | 'end' | 'look'): Promise<void> {
    const clock = this.#clock
    watchStores(this.#ledger, clock, () => broker)
    const complain = (error: unknown, what: string): void => {
      this.#ledger.fault(`${what}: ${String(error)}`)
    }
    const { broker } = await openOn(fs, clock, this.#files, complain)
    await createTopics(broker)
    if (this.#forgets) await this.#takeStock(broker)
    const ledger = this.#ledger
    await look({ broker, ledger, topics: new Map(this.#left.topics) })
    const at: Surroundings = {
      broker,
      ledger,
      dice: new Dice(this.#dice.below(2 ** 31)),
      left: this.#left,
      refusals: new Set(['CLOSED', 'TOO_LARGE']),
      sleep: (ms) => new Promise((resolve) => void clock.setTimer(resolve, ms)),
    }
    if (task !== 'look') await this.#act(at, task)
    if (task === 'work' && this.#dice.chance(0.5)) return
    await broker.close()
    ledger.history.close()
  }

  async #act(at: Surroundings, task: 'work' | 'end'): Promise<void> {
    const crew = new Crew(at)
    await crew.join()
    const load = new Load(at)
    if (task === 'work') return load.run(10 + this.#dice.below(150), PUBLISHERS)
    await load.settleIds()
    await crew.drained()
    await look({ broker: at.broker, ledger: at.ledger })
    await readLetters(at.broker, at.ledger)
  }

  /** `os`: what the life before has lost is judged, and the history begins anew with what is there. */
  async #takeStock(broker: Surroundings['broker']): Promise<void> {
    const before = this.#ledger
    await this.#remains.compare(broker, before)
    this.#verdicts.push(judge({ events: before.history.events, facts: before.facts }))
    this.#ledger = this.#newLedger()
    this.#left = this.#remains.begin(this.#ledger, this.#left.life)
  }
}

function sumOf(verdicts: readonly Verdict[]): Verdict {
  const add = (of: (verdict: Verdict) => number): number => verdicts.reduce((sum, each) => sum + of(each), 0)
  return {
    acked: add(({ acked }) => acked),
    lost: add(({ lost }) => lost),
    duplicated: add(({ duplicated }) => duplicated),
    corrupt: add(({ corrupt }) => corrupt),
    faults: verdicts.flatMap(({ faults }) => faults),
  }
}
