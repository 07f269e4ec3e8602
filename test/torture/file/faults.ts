/**
 * One operation of the disk fails, in one way, while a broker opens, works or closes: each operation in turn, in each
 * way that it can. Publishes are refused or unknown, nobody hangs, nothing that was acknowledged is lost, and the next
 * process finds everything in order, also when the power fails then. A trial is one such failure.
 */
import type { FileEngineOptions } from '../../../src/log/file/file-engine.ts'
import type { Operation } from '../../../src/log/file/fs.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import type { SendEvent } from '../../../src/testing/history.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { type Fault, SimFs } from '../../support/sim-fs.ts'
import { Dice } from '../dice.ts'
import { Crew } from './crew.ts'
import { judge } from './judge.ts'
import { Ledger } from './ledger.ts'
import { ID_TOPIC, type Left, leftBy, NOTHING_LEFT } from './left.ts'
import { createTopics, Load, type Surroundings } from './load.ts'
import { look, readLetters } from './look.ts'
import { drive, openOn } from './machine.ts'
import { Report } from './report.ts'
import { watchStores } from './watch.ts'

const KiB = 1024
const STEPS = 40
const FILES: FileEngineOptions = {
  journalBytes: 16 * KiB,
  segmentBytes: 2 * KiB,
  cacheBytes: 8 * KiB,
  flushMs: 5,
}
/** What a failure of the disk may be to whoever publishes. */
const REFUSALS = new Set(['CLOSED', 'STORAGE_FULL', 'STORAGE_ERROR', 'OUTCOME_UNKNOWN', 'TOO_LARGE'])

/** In which ways each operation can fail. */
const WAYS: { readonly [operation in Operation]?: readonly Fault[] } = {
  open: [{ fail: 'EMFILE' }, { fail: 'EIO' }, { fail: 'ENOSPC' }],
  write: [{ fail: 'ENOSPC' }, { fail: 'EIO' }, { shortBytes: 1 }, { shortBytes: 100 }],
  sync: [{ fail: 'EIO' }, { fail: 'ENOSPC' }],
  makeDirectory: [{ fail: 'ENOSPC' }, { fail: 'EIO' }],
  rename: [{ fail: 'EIO' }],
  syncDirectory: [{ fail: 'EIO' }],
  truncate: [{ fail: 'EIO' }],
  remove: [{ fail: 'EIO' }],
  removeDirectory: [{ fail: 'EIO' }],
  read: [{ fail: 'EIO' }],
  list: [{ fail: 'EIO' }],
  size: [{ fail: 'EIO' }],
  exists: [{ fail: 'EIO' }],
  close: [{ fail: 'EIO' }],
}

export interface FaultOptions {
  readonly seed: number
  /** Of all failures that could be tried. */
  readonly share: number
  readonly isStopped: () => boolean
}

interface Failure {
  readonly ordinal: number
  readonly name: string
  readonly fault: Fault
}

export async function faultTrials({ seed, share, isStopped }: FaultOptions): Promise<Report> {
  const report = new Report()
  const dice = new Dice(seed)
  for (const durability of ['fsync', 'os'] as const) {
    for (const failure of await failures(seed, durability)) {
      if (isStopped() || report.failures >= 5) return report
      if (!dice.chance(share)) continue
      const machine = new Machine(seed, durability)
      await machine.fail(failure)
      report.trials++
      report.add(
        machine.verdict(),
        `--mode faults --seed ${seed} (${durability}, ${failure.name} at ${failure.ordinal})`,
      )
    }
  }
  return report
}

/** Everything that can go wrong in a life, in the order in which it can. */
async function failures(seed: number, durability: 'fsync' | 'os'): Promise<Failure[]> {
  const found: Failure[] = []
  const machine = new Machine(seed, durability)
  await machine.work((operation, path, ordinal) => {
    for (const fault of WAYS[operation] ?? []) {
      found.push({ ordinal, name: `${JSON.stringify(fault)} for ${operation} of ${path}`, fault })
    }
    return undefined
  })
  return found
}

class Machine {
  readonly #files: FileEngineOptions
  readonly #seed: number
  readonly #ledger = new Ledger()
  #clock = new ManualClock()
  #fs: SimFs
  #lives = 0

  constructor(seed: number, durability: 'fsync' | 'os') {
    this.#seed = seed
    this.#files = { ...FILES, durability }
    this.#fs = new SimFs({ seed, clock: this.#clock })
  }

  async fail({ ordinal, fault }: Failure): Promise<void> {
    await this.work((_operation, _path, at) => (at === ordinal ? fault : undefined))
    this.#judgeSilence()
    // Under `os` a power loss may take what a sync that failed had not written; a kill takes nothing.
    const dice = new Dice(this.#seed + ordinal)
    this.#restart(this.#files.durability === 'fsync' && dice.chance(0.5) ? dice.below(2 ** 31) : undefined)
    await this.#live(async (at) => {
      const crew = new Crew(at)
      await crew.join()
      await new Load(at).settleIds()
      await crew.drained()
      await look({ broker: at.broker, ledger: at.ledger })
      await readLetters(at.broker, at.ledger)
    }, false)
  }

  work(onOperation: SimFs['onOperation']): Promise<void> {
    this.#fs.onOperation = onOperation
    return this.#live(async (at) => {
      await new Crew(at).join()
      await new Load(at).run(STEPS, 3)
    }, true)
  }

  verdict(): ReturnType<typeof judge> {
    return judge({ events: this.#ledger.history.events, facts: this.#ledger.facts })
  }

  #restart(powerLoss: number | undefined): void {
    const { history } = this.#ledger
    if (history.events.at(-1)?.type !== 'close') history.crash()
    this.#clock = new ManualClock({ startMs: this.#clock.now() + 10 })
    const clock = this.#clock
    this.#fs = powerLoss === undefined ? this.#fs.kill({ clock }) : this.#fs.crash({ clock, seed: powerLoss })
    this.#fs.onOperation = () => undefined
  }

  /** One process. `fails`: it may reject, and complain, as an unsound disk makes it. */
  async #live(act: (at: Surroundings) => Promise<void>, fails: boolean): Promise<void> {
    const ledger = this.#ledger
    const left = this.#lives === 0 ? NOTHING_LEFT : leftBy(this.#lives, ledger.history.events, ledger.facts)
    const living = this.#process(act, left, fails)
    this.#lives++
    const done = await drive(this.#clock, living, () => false)
    if (!done) ledger.fault(`a process hangs${fails ? ' after a failure of the disk' : ''}`)
    const error = await Promise.race([
      living.then(
        () => undefined,
        (reason: unknown) => reason,
      ),
      undefined,
    ])
    if (error !== undefined && !(fails && isOfDisk(error)))
      ledger.fault(`the process failed: ${error instanceof Error ? error.stack : String(error)}`)
  }

  async #process(act: (at: Surroundings) => Promise<void>, left: Left, fails: boolean): Promise<void> {
    const ledger = this.#ledger
    const clock = this.#clock
    watchStores(ledger, clock, () => broker)
    const complain = (error: unknown, what: string): void => {
      if (!(fails && isOfDisk(error)) && !what.startsWith('dead-lettering'))
        ledger.fault(`${what}: ${String(error)}`)
    }
    const { broker } = await openOn(this.#fs, clock, this.#files, complain)
    const sleep = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(resolve, ms))
    try {
      await createTopics(broker)
      await look({ broker, ledger, topics: new Map(left.topics) })
      await act({
        broker,
        ledger,
        dice: new Dice(this.#seed),
        left,
        refusals: fails ? REFUSALS : new Set(['CLOSED', 'TOO_LARGE']),
        sleep,
      })
    } finally {
      await broker.close({ drainMs: 1_000 })
    }
    ledger.history.close()
  }

  /** Once a publish was told that its outcome is unknown, the log is poisoned, and no later one is acknowledged. */
  #judgeSilence(): void {
    const { events } = this.#ledger.history
    const poisoned = this.#ledger.facts.find(
      ({ fact }) => fact.fact === 'refused' && fact.code === 'OUTCOME_UNKNOWN',
    )
    if (poisoned === undefined) return
    for (const event of events.slice(poisoned.at)) {
      if (event.type !== 'send-ok' || event.of < poisoned.at) continue
      // A publish id that was accepted before is answered from memory.
      if ((events[event.of] as SendEvent).topic === ID_TOPIC) continue
      this.#ledger.fault('a publish was acknowledged after another one had failed with OUTCOME_UNKNOWN')
      return
    }
  }
}

function isOfDisk(error: unknown): boolean {
  return error instanceof OdradekError && REFUSALS.has(error.code)
}
