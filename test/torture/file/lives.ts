/**
 * Brokers that live on one simulated disk, one after the other, under the usual work; what each of them did is in one
 * ledger. Whoever makes the disk unsound says so, and then a life may fail as an unsound disk makes it.
 */
import type { FileEngineOptions } from '../../../src/log/file/file-engine.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import type { SendEvent } from '../../../src/testing/history.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs, type SimOptions } from '../../support/sim-fs.ts'
import { Dice } from '../dice.ts'
import { Crew } from './crew.ts'
import { judge, type Verdict } from './judge.ts'
import { Ledger } from './ledger.ts'
import { ID_TOPIC, type Left, leftBy, NOTHING_LEFT } from './left.ts'
import { createTopics, Load, type Surroundings } from './load.ts'
import { look, readLetters } from './look.ts'
import { drive, openOn } from './machine.ts'
import { watchStores } from './watch.ts'

const KiB = 1024
const FILES: FileEngineOptions = {
  journalBytes: 16 * KiB,
  segmentBytes: 2 * KiB,
  cacheBytes: 8 * KiB,
  flushMs: 5,
}
/** What a failure of the disk may be to whoever publishes. */
const REFUSALS = new Set([
  'CLOSED',
  'STORAGE_FULL',
  'STORAGE_ERROR',
  'OUTCOME_UNKNOWN',
  'TOO_LARGE',
  'TIMEOUT',
])

export class Lives {
  readonly seed: number
  readonly #files: FileEngineOptions
  readonly #ledger = new Ledger()
  clock: ManualClock = new ManualClock()
  fs: SimFs
  #lives = 0

  constructor(seed: number, durability: 'fsync' | 'os', disk: SimOptions = {}) {
    this.seed = seed
    this.#files = { ...FILES, durability }
    this.fs = new SimFs({ seed, clock: this.clock, ...disk })
  }

  verdict(): Verdict {
    return judge({ events: this.#ledger.history.events, facts: this.#ledger.facts })
  }

  /** Whether a publish was refused with that code. */
  refused(code: string): boolean {
    return this.#ledger.facts.some(({ fact }) => fact.fact === 'refused' && fact.code === code)
  }

  fault(text: string): void {
    this.#ledger.fault(text)
  }

  /** The machine is there again, after a power loss with that seed, or the process alone. */
  restart(powerLoss: number | undefined): void {
    const { history } = this.#ledger
    if (history.events.at(-1)?.type !== 'close') history.crash()
    this.clock = new ManualClock({ startMs: this.clock.now() + 10 })
    const { clock } = this
    this.fs = powerLoss === undefined ? this.fs.kill({ clock }) : this.fs.crash({ clock, seed: powerLoss })
    this.fs.onOperation = () => undefined
  }

  /** The last life: everything comes to its end, and all of it is looked at. */
  end(): Promise<void> {
    return this.live(async (at) => {
      const crew = new Crew(at)
      await crew.join()
      await new Load(at).settleIds()
      await crew.drained()
      await look({ broker: at.broker, ledger: at.ledger })
      await readLetters(at.broker, at.ledger)
    }, false)
  }

  /** One process. `fails`: it may reject, and complain, as an unsound disk makes it. */
  async live(act: (at: Surroundings) => Promise<void>, fails: boolean): Promise<void> {
    const ledger = this.#ledger
    const left = this.#lives === 0 ? NOTHING_LEFT : leftBy(this.#lives, ledger.history.events, ledger.facts)
    this.#lives++
    const living = this.#process(act, left, fails).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (!(await drive(this.clock, living, () => false))) {
      ledger.fault(`a process hangs${fails ? ' on an unsound disk' : ''}`)
      return
    }
    const error = await living
    if (error !== undefined && !(fails && isOfDisk(error)))
      ledger.fault(`the process failed: ${error instanceof Error ? error.stack : String(error)}`)
  }

  async #process(act: (at: Surroundings) => Promise<void>, left: Left, fails: boolean): Promise<void> {
    const ledger = this.#ledger
    const { clock } = this
    watchStores(ledger, clock, () => broker)
    const complain = (error: unknown, what: string): void => {
      if (!(fails && isOfDisk(error))) ledger.fault(`${what}: ${String(error)}`)
    }
    const { broker } = await openOn(this.fs, clock, this.#files, complain)
    try {
      await createTopics(broker)
      await look({ broker, ledger, topics: new Map(left.topics) })
      await act({
        broker,
        ledger,
        dice: new Dice(this.seed),
        left,
        refusals: fails ? REFUSALS : new Set(['CLOSED', 'TOO_LARGE']),
        sleep: (ms) => new Promise((resolve) => void clock.setTimer(resolve, ms)),
      })
    } finally {
      await broker.close()
    }
    ledger.history.close()
  }

  /** Once a publish was told that its outcome is unknown, the log is poisoned, and no later one is acknowledged. */
  judgeSilence(): void {
    const { events } = this.#ledger.history
    const poisoned = this.#ledger.facts.find(
      ({ fact }) => fact.fact === 'refused' && fact.code === 'OUTCOME_UNKNOWN',
    )
    if (poisoned === undefined) return
    for (const event of events.slice(poisoned.at)) {
      if (event.type !== 'send-ok' || event.of < poisoned.at) continue
      // A publish id that was accepted before is answered from memory.
      if ((events[event.of] as SendEvent).topic === ID_TOPIC) continue
      this.fault('a publish was acknowledged after another one had failed with OUTCOME_UNKNOWN')
      return
    }
  }
}

function isOfDisk(error: unknown): boolean {
  return error instanceof OdradekError && REFUSALS.has(error.code)
}
