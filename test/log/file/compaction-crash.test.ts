/**
 * A compacted log under everything that happens to one: keyed records, tombstones, transactions, compressed batches,
 * time, trims, ends of processes and power losses at any operation. Against a plain list of what was accepted: what is
 * seen is always what was said, of each key the newest, and nothing that was deleted comes back.
 */
import { describe, expect, it } from 'vitest'
import type { PartitionLog } from '../../../src/log/contract.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { Dice } from '../../torture/dice.ts'
import {
  boot,
  compacted,
  DAY_MS,
  type Machine,
  onReplaced,
  put,
  type Row,
  rowsOf,
  SMALL,
  settled,
} from './compaction-kit.ts'
import {
  accepted,
  latestOf,
  Model,
  markerBatch,
  type Said,
  tinyCompression,
  WireConsumer,
  wireBatch,
} from './compaction-model.ts'

const KEYS = Array.from({ length: 9 }, (_, i) => `key-${i}`)

interface Counts {
  steps: number
  crashes: number
  swaps: number
  tombstones: number
}

class Story {
  readonly dice: Dice
  readonly model = new Model()
  readonly counts: Counts
  machine: Machine
  log: PartitionLog
  /** Everything below it was accepted before this process, or by it. */
  #acked = 0
  #ackedStart = 0
  wire = new WireConsumer(0)
  readonly reports: string[] = []

  private constructor(dice: Dice, counts: Counts, machine: Machine, log: PartitionLog) {
    this.dice = dice
    this.counts = counts
    this.machine = machine
    this.log = log
  }

  static async begin(seed: number, counts: Counts): Promise<Story> {
    const machine = await boot(new SimFs({ seed }), SMALL, { compression: tinyCompression, mapBytes: 1 })
    const story = new Story(new Dice(seed), counts, machine, await machine.engine.openLog(compacted()))
    story.#watch()
    return story
  }

  get #fs(): SimFs {
    return this.machine.fs as SimFs
  }

  #said(): Said {
    const { dice } = this
    const value = dice.chance(0.2) ? null : `${dice.below(1000)} ${'x'.repeat(dice.below(150))}`
    if (value === null) this.counts.tombstones++
    return { key: dice.pick(KEYS), value }
  }

  // ── what is done ──────────────────────────────────────────────────────────────────────────────

  async #publish(): Promise<void> {
    const timestamp = this.machine.clock.now()
    for (let left = 1 + this.dice.below(10); left > 0; left--) {
      const { key, value } = this.#said()
      const offset = put(this.log, this.machine.clock, key, value)
      expect(offset).toBe(this.model.end)
      this.model.add([{ offset, key, value, timestamp }])
    }
    await this.log.durable(this.model.end - 1)
  }

  async #produce(): Promise<void> {
    const { dice, model, log } = this
    const id = 1 + dice.below(3)
    const transactional = model.isOpen(id) || dice.chance(0.7)
    const timestamp = this.machine.clock.now() - dice.below(1000)
    const said = Array.from({ length: 1 + dice.below(6) }, () => this.#said())
    if (dice.chance(0.1)) said.push({ key: null, value: dice.chance(0.5) ? null : 'keyless' })
    const producer = { id, epoch: 0, sequence: model.sequenceOf(id), transactional }
    const batch = wireBatch(said, producer, timestamp, dice.chance(0.4) ? 1 : 0)
    const { base, last } = accepted(log.tryAppend(batch))
    const rows = said.map((each, i) => ({ offset: base + i, key: each.key, value: each.value, timestamp }))
    model.add(rows, id, transactional)
    await log.durable(last)
  }

  async #end(): Promise<void> {
    const { dice, model, log } = this
    const open = [1, 2, 3].filter((id) => model.isOpen(id))
    if (open.length === 0) return this.#publish()
    const [id, commit] = [dice.pick(open), dice.chance(0.5)]
    const { last } = accepted(log.tryAppend(markerBatch(id, commit, this.machine.clock.now())))
    model.addMarker(id, commit)
    await log.durable(last)
  }

  async #advance(): Promise<void> {
    // One that is behind for longer than tombstones and markers are kept may miss them.
    while (await this.wire.poll(this.log));
    await this.machine.clock.advance(this.dice.below(2 * DAY_MS))
  }

  async #trim(): Promise<void> {
    const { log, model, dice } = this
    if (dice.chance(0.7)) return this.#publish()
    model.start = log.marks.start + dice.below(Math.min(20, log.marks.stable - log.marks.start + 1))
    await log.trim(model.start)
  }

  async #look(): Promise<void> {
    await settled(this.machine)
    this.check(await rowsOf(this.log))
    const fresh = new WireConsumer(this.log.marks.start)
    while (await fresh.poll(this.log, 100 + this.dice.below(5000)));
    this.check(fresh.rows)
    if (this.dice.chance(0.5)) await this.wire.poll(this.log, 100 + this.dice.below(5000))
  }

  check(seen: readonly Row[]): void {
    expect(this.model.faults(seen).slice(0, 3)).toEqual([])
  }

  // ── how it ends ───────────────────────────────────────────────────────────────────────────────

  async step(): Promise<void> {
    const { dice } = this
    this.counts.steps++
    const action = dice.pick([
      () => this.#publish(),
      () => this.#publish(),
      () => this.#produce(),
      () => this.#produce(),
      () => this.#end(),
      () => this.#advance(),
      () => this.#trim(),
      () => this.#look(),
    ])
    if (dice.chance(0.15)) this.#breakSoon()
    if (await this.#survives(action)) {
      this.#acked = this.model.end
      this.#ackedStart = this.model.start
      if (!dice.chance(0.08)) return
    }
    await this.#restart()
  }

  /** Stops the machine at one of the operations to come. */
  #breakSoon(): void {
    const at = this.#fs.operations + 1 + this.dice.below(80)
    const halt = this.dice.chance(0.5) ? 'before' : 'after'
    this.#fs.onOperation = (_, __, ordinal) => (ordinal === at ? { halt } : undefined)
  }

  async #survives(action: () => Promise<void>): Promise<boolean> {
    const outcome: { ended: boolean; error?: unknown } = { ended: false }
    action().then(
      () => {
        outcome.ended = true
      },
      (error: unknown) => {
        Object.assign(outcome, { ended: true, error })
      },
    )
    for (let turns = 0; !outcome.ended && !this.#fs.halted; turns++) {
      if (turns > 100_000) throw new Error('it hangs')
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (outcome.error !== undefined) throw outcome.error
    return outcome.ended
  }

  async #restart(): Promise<void> {
    const { dice, machine } = this
    this.#note(await this.#ended())
    const fs =
      this.#fs.halted && dice.chance(0.5) ? this.#fs.crash({ seed: dice.below(2 ** 30) }) : this.#fs.kill()
    const clock = new ManualClock({ startMs: machine.clock.now() })
    this.machine = await boot(fs, SMALL, {
      clock,
      compression: tinyCompression,
      mapBytes: dice.pick([1, 2 ** 20]),
    })
    this.log = await this.machine.engine.openLog(compacted())
    this.#watch()
    const { start, end } = this.log.marks
    expect(end).toBeGreaterThanOrEqual(this.#acked)
    expect(end).toBeLessThanOrEqual(this.model.end)
    expect(start).toBeGreaterThanOrEqual(this.#ackedStart)
    this.model.cut(end)
    this.model.start = start
    this.#acked = end
    this.#ackedStart = start
    // What a consumer was told stays told, so it is not asked again for what a crash has taken.
    this.check(await rowsOf(this.log))
  }

  /** Ends the process in one of three ways, if it has not ended. */
  async #ended(): Promise<readonly string[]> {
    const { machine } = this
    if (!this.#fs.halted && this.dice.chance(0.5)) {
      await this.#survives(() => machine.engine.close())
    }
    if (this.#fs.halted) this.counts.crashes++
    return machine.reports
  }

  #watch(): void {
    onReplaced(this.log, () => void this.counts.swaps++)
  }

  #note(reports: readonly string[]): void {
    this.reports.push(...reports.filter((report) => !report.startsWith('a group was being written')))
  }

  async finish(): Promise<void> {
    this.#fs.onOperation = () => undefined
    if (this.#fs.halted) await this.#restart()
    while (await this.wire.poll(this.log));
    // Whoever read from the beginning on, through all of it, knows the newest value of every key.
    const view = latestOf(this.wire.rows)
    for (const [key, row] of latestOf(this.model.visible())) {
      if (row.value !== null) expect([key, view.get(key)]).toEqual([key, row])
    }
    await this.#look()
    await this.machine.engine.close()
    this.#note(this.machine.reports)
    expect(this.reports).toEqual([])
  }
}

describe('a compacted log', () => {
  const seeds = Array.from(
    { length: Number(process.env.STORIES ?? 15) },
    (_, i) => i + Number(process.env.SEED ?? 1),
  )

  it('is what was said, of each key the newest, whatever happens', async () => {
    const counts: Counts = { steps: 0, crashes: 0, swaps: 0, tombstones: 0 }
    for (const seed of seeds) {
      try {
        const story = await Story.begin(seed, counts)
        for (let steps = 0; steps < 120; steps++) await story.step()
        await story.finish()
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error })
      }
    }
    expect(counts.crashes).toBeGreaterThan(5 * seeds.length)
    expect(counts.swaps).toBeGreaterThan(30 * seeds.length)
    expect(counts.tombstones).toBeGreaterThan(20 * seeds.length)
  }, 300_000)
})
