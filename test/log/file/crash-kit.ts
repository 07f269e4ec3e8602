/**
 * A program on the file engine that can be stopped anywhere, and what it leaves held against what it was told.
 *
 *   step 0 │ step 1 │ step 2 │ step 3 │ step 4          what is done in one run to completion
 *          ▲ after[1]                 ▲ acked            after a crash: all as it was after one of the steps
 *                                       └────── ▲ one of these
 *
 * A step appends to some logs, in rows and in batches with and without transactions, trims, deletes and puts. What a
 * log and the store are after each of them is noted; which of them was accepted, too, and which is on the disk.
 */
import { expect } from 'vitest'
import { encoded } from '../../../src/core/encode.ts'
import type { Engine, PartitionLog } from '../../../src/log/contract.ts'
import { type FileEngineOptions, fileEngine } from '../../../src/log/file/file-engine.ts'
import type { FileSystem } from '../../../src/log/file/fs.ts'
import type { Batch } from '../../../src/model/batch.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import {
  keeping,
  markerOf,
  producerOf,
  readRows,
  specOf,
  T0,
  wireBatchOf,
} from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import type { SimFs } from '../../support/sim-fs.ts'
import { Dice } from '../../torture/dice.ts'

export const SMALL: FileEngineOptions = { journalBytes: 8 * 1024, segmentBytes: 1024, cacheBytes: 4 * 1024 }
/** Of the log that records of retention go through. */
const KEPT_RECORDS = 12

/** What is at an offset: a value, or a marker that ends the transaction of its producer. */
interface Entry {
  readonly value: string | null
  /** −1 for none. */
  readonly producer: number
  readonly transactional: boolean
  readonly ends?: 'commit' | 'abort'
}

interface Place {
  readonly start: number
  readonly end: number
}

/** After a step. */
interface Moment {
  readonly logs: ReadonlyMap<string, Place>
  readonly meta: ReadonlyMap<string, unknown>
}

/** The program's memory, which outlives its processes. */
export class Story {
  readonly entries = new Map<string, Entry[]>()
  readonly meta = new Map<string, unknown>()
  /** Names of logs that may be there. */
  readonly names = new Set<string>(['a', 'b'])
  readonly after: Moment[] = [{ logs: new Map(), meta: new Map() }]
  /** How many steps are accepted, and how many are on the disk. */
  acked = 0
  flushed = 0
  /** Sequences of producers in log b. */
  readonly sequences = new Map<number, number>()
  /** Producers with an open transaction in log b. */
  readonly open = new Set<number>()

  get steps(): number {
    return this.after.length - 1
  }

  /** The third log, which is deleted and followed by the next one now and then. */
  get third(): string {
    const { logs } = this.after.at(-1) as Moment
    return [...logs.keys()].find((name) => name.startsWith('c')) ?? this.nextName()
  }

  /** No name is given twice. */
  nextName(): string {
    const name = `c${this.names.size}`
    this.names.add(name)
    return name
  }

  /** The same so far, whatever happens next. */
  copy(): Story {
    const copy = new Story()
    for (const [name, list] of this.entries) copy.entries.set(name, [...list])
    for (const name of this.names) copy.names.add(name)
    copy.after.splice(0, 1, ...this.after)
    copy.cut(this.steps)
    copy.acked = this.acked
    copy.flushed = this.flushed
    return copy
  }

  /** The program goes on from this moment, which is on the disk for good only when a process says so. */
  cut(step: number): void {
    const moment = this.after[step] as Moment
    this.after.length = step + 1
    this.acked = Math.min(this.acked, step)
    this.flushed = Math.min(this.flushed, step)
    // Also those that are deleted since: that may not be on the disk.
    for (const [name, list] of this.entries) {
      list.length = Math.max(0, ...this.after.map(({ logs }) => logs.get(name)?.end ?? 0))
    }
    this.meta.clear()
    for (const [key, value] of moment.meta) this.meta.set(key, value)
    this.sequences.clear()
    this.open.clear()
    for (const { producer, transactional, ends } of this.entries.get('b') ?? []) {
      if (producer < 0) continue
      if (ends === undefined) this.sequences.set(producer, (this.sequences.get(producer) ?? 0) + 1)
      if (ends !== undefined) this.open.delete(producer)
      else if (transactional) this.open.add(producer)
    }
  }
}

/** One process of the program. */
export class Life {
  readonly story: Story
  readonly clock = new ManualClock()
  readonly fs: SimFs
  error: unknown
  ended = false
  engine: Engine | undefined
  readonly #options: FileEngineOptions
  readonly #seam: (fs: SimFs) => FileSystem
  readonly #dice: Dice
  readonly #logs = new Map<string, PartitionLog>()
  #third = ''
  #moving = Promise.resolve()

  constructor(
    fs: (clock: ManualClock) => SimFs,
    story: Story,
    options: FileEngineOptions,
    seed: number,
    seam: (fs: SimFs) => FileSystem = (itself) => itself,
  ) {
    this.fs = fs(this.clock)
    this.story = story
    this.#options = options
    this.#seam = seam
    this.#dice = new Dice(seed)
  }

  /** Opens, does so many steps, and closes, unless it is stopped on the way. */
  async run(steps: number): Promise<this> {
    this.#live(steps)
      .catch((error: unknown) => {
        this.error = error
      })
      .finally(() => {
        this.ended = true
      })
    let [seen, idle] = [0, 0]
    while (!this.ended && !this.fs.halted) {
      await turn()
      idle = this.fs.operations === seen ? idle + 1 : 0
      seen = this.fs.operations
      // Nothing goes on any more: it waits for its time.
      if (idle < 200) continue
      idle = 0
      await this.#advance(1000)
    }
    return this
  }

  async #live(steps: number): Promise<void> {
    this.engine = await fileEngine({ clock: this.clock, fs: this.#seam(this.fs) }, this.#options)
    this.story.acked = this.story.flushed = this.story.steps
    await this.#open('a')
    await this.#open('b')
    this.#third = this.story.third
    await this.#open(this.#third)
    for (let i = 0; i < steps; i++) await this.#step()
    await this.engine.close()
    this.story.acked = this.story.flushed = this.story.steps
  }

  async #open(name: string): Promise<void> {
    const engine = this.engine as Engine
    const retention = name === 'a' ? keeping({ records: KEPT_RECORDS }) : keeping({})
    this.#logs.set(name, await engine.openLog(specOf(retention, name)))
    if (!this.story.entries.has(name)) this.story.entries.set(name, [])
    this.story.names.add(name)
  }

  /** By one at a time. */
  #advance(ms: number): Promise<void> {
    this.#moving = this.#moving.then(() => this.clock.advance(ms))
    return this.#moving
  }

  #log(name: string): PartitionLog {
    return this.#logs.get(name) as PartitionLog
  }

  /** All of it in one run to completion, but for the waits at its end. A deletion is the last of it. */
  async #step(): Promise<void> {
    // Nothing is done any more by a process that is no more.
    if (this.fs.halted) return new Promise(() => {})
    const { story } = this
    const dice = this.#dice
    const waits: Promise<void>[] = []
    for (let left = 1 + dice.below(3); left > 0 && this.#logs.has(this.#third); left--) {
      waits.push(...this.#act(dice.below(20)))
    }
    const number = this.#noteMoment()
    const acked = Promise.all(waits).then(() => {
      // Where nothing was done nothing was promised.
      if (waits.length > 0) story.acked = Math.max(story.acked, number)
    })
    acked.catch(() => undefined)
    if (!this.#logs.has(this.#third)) await this.#open(this.#third)
    const way = dice.below(8)
    if (way < 2) await acked
    else if (way < 5) await turn()
    else if (way === 5) {
      await this.#log('b').flush()
      story.flushed = Math.max(story.flushed, number)
      story.acked = Math.max(story.acked, number)
    } else if (way === 6) await this.#advance(500)
  }

  #act(kind: number): Promise<void>[] {
    if (kind < 7) return this.#append('a')
    if (kind < 10) return this.#append(this.#third)
    if (kind < 12) return this.#appendBatch('a')
    if (kind < 14) return this.#produce(1, false)
    if (kind < 16) return this.#produce(2 + this.#dice.below(2), true)
    if (kind === 16) return this.#endTransaction()
    if (kind === 17) return this.#put()
    return kind === 18 ? this.#trim() : this.#delete()
  }

  #value(what: string): string {
    return `${this.story.after.length} ${what} ${'x'.repeat(this.#dice.below(this.#dice.chance(0.1) ? 1500 : 120))}`
  }

  #append(name: string): Promise<void>[] {
    const log = this.#log(name)
    const value = this.#value('row')
    const form = encoded('t', defaultCodec, value, null, null)
    const offset = log.tryAppendOne(form.value, null, form.headers, T0, form.sizeBytes)
    if (offset < 0) return []
    this.#note(name, offset, [{ value, producer: -1, transactional: false }])
    return [log.durable(offset)]
  }

  #appendBatch(name: string): Promise<void>[] {
    const values = [0, 1, 2].map((i) => this.#value(`batch ${i}`))
    return this.#take(
      name,
      wireBatchOf(values.map((value) => ({ value }))),
      values.map((value) => ({ value, producer: -1, transactional: false })),
    )
  }

  #produce(id: number, transactional: boolean): Promise<void>[] {
    const { sequences, open } = this.story
    const sequence = sequences.get(id) ?? 0
    const values = [this.#value(transactional ? 'txn' : 'idempotent'), this.#value('txn')]
    const producer = producerOf(id, sequence, { transactional })
    const rows = values.map((value) => ({ value }))
    const taken = this.#take(
      'b',
      wireBatchOf(rows, producer),
      values.map((value) => ({ value, producer: id, transactional })),
    )
    if (taken.length === 0) return taken
    sequences.set(id, sequence + values.length)
    if (transactional) open.add(id)
    return taken
  }

  #endTransaction(): Promise<void>[] {
    const [id] = this.story.open
    if (id === undefined) return []
    const commit = this.#dice.chance(0.5)
    const taken = this.#take('b', markerOf(producerOf(id, 0, { transactional: true }), commit), [
      { value: null, producer: id, transactional: true, ends: commit ? 'commit' : 'abort' },
    ])
    if (taken.length > 0) this.story.open.delete(id)
    return taken
  }

  #take(name: string, batch: Batch, entries: readonly Entry[]): Promise<void>[] {
    const log = this.#log(name)
    const answer = log.tryAppend(batch)
    if (typeof answer === 'string') {
      expect(answer).toMatch(/NO_ROOM|TOO_LARGE|STORAGE_FULL|POISONED/)
      return []
    }
    expect(answer.duplicate).toBe(false)
    this.#note(name, answer.base, entries)
    return [log.durable(answer.last)]
  }

  #note(name: string, offset: number, entries: readonly Entry[]): void {
    const list = this.story.entries.get(name) as Entry[]
    expect(list.length).toBe(offset)
    list.push(...entries)
  }

  #put(): Promise<void>[] {
    const key = `k${this.#dice.below(4)}`
    const value = this.#dice.chance(0.2)
      ? null
      : { step: this.story.after.length, x: 'y'.repeat(this.#dice.below(300)) }
    if (value === null) this.story.meta.delete(key)
    else this.story.meta.set(key, value)
    return [(this.engine as Engine).meta.put([[key, value]])]
  }

  #trim(): Promise<void>[] {
    const log = this.#log(this.#third)
    const { start } = log.marks
    const trimmed = log.trim(start + this.#dice.below(4))
    if (log.marks.start > start) return [trimmed]
    trimmed.catch(() => undefined)
    return []
  }

  /** The next log has another name, as topics have. */
  #delete(): Promise<void>[] {
    const name = this.#third
    if (this.#log(name).marks.end === 0) return []
    this.#logs.delete(name)
    this.#third = this.story.nextName()
    return [(this.engine as Engine).deleteLog(name, 0)]
  }

  #noteMoment(): number {
    const logs = new Map<string, Place>()
    for (const [name, { marks }] of this.#logs) logs.set(name, { start: marks.start, end: marks.end })
    this.story.after.push({ logs, meta: new Map(this.story.meta) })
    return this.story.steps
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** The moment that the disk shows, which is at or after the step `from`. Throws where it shows none. */
export async function check(
  fs: SimFs,
  story: Story,
  from: number,
  options: FileEngineOptions,
): Promise<number> {
  const engine = await fileEngine({ clock: new ManualClock(), fs }, options)
  try {
    const logs = new Map<string, PartitionLog>()
    for (const name of story.names) logs.set(name, await engine.openLog(specOf(keeping({}), name)))
    const meta = [...engine.meta.scan('')]
    const step = story.after.findLastIndex((moment) => shows(moment, logs, meta))
    if (step < from)
      throw new Error(
        `${described(story, from)}; found ${placesOf(logs)} ${JSON.stringify(meta).slice(0, 200)}`,
      )
    for (const [name, log] of logs) await checkContent(name, log, story)
    return step
  } finally {
    await engine.close()
  }
}

function shows(
  { logs: places, meta: entries }: Moment,
  logs: ReadonlyMap<string, PartitionLog>,
  meta: readonly (readonly [string, unknown])[],
): boolean {
  for (const [name, { marks }] of logs) {
    const place = places.get(name) ?? { start: 0, end: 0 }
    if (place.start !== marks.start || place.end !== marks.end) return false
  }
  const expected = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify(expected) === JSON.stringify(meta)
}

async function checkContent(name: string, log: PartitionLog, story: Story): Promise<void> {
  const { start, end, high, stable } = log.marks
  expect([name, high]).toEqual([name, end])
  const entries = (story.entries.get(name) ?? []).slice(0, end)
  const [open, aborted] = transactionsOf(entries)
  expect([name, stable]).toEqual([name, Math.max(start, Math.min(end, ...open))])
  const shown = (from: number, to: number, hidden: ReadonlySet<number>): unknown[] =>
    entries
      .slice(from, to)
      .flatMap(({ value }, i) => (value === null || hidden.has(from + i) ? [] : [[from + i, value]]))
  const all = (await readRows(log, start, 'uncommitted')).rows.map(({ offset, value }) => [offset, value])
  expect(all).toEqual(shown(start, end, new Set()))
  const committed = (await readRows(log, start, 'committed', 3)).rows.map(({ offset, value }) => [
    offset,
    value,
  ])
  expect(committed).toEqual(shown(start, stable, aborted))
}

/** First offsets of open transactions, and offsets of what was aborted. */
function transactionsOf(entries: readonly Entry[]): [open: Iterable<number>, aborted: ReadonlySet<number>] {
  const open = new Map<number, number[]>()
  const aborted = new Set<number>()
  for (const [offset, { producer, transactional, ends }] of entries.entries()) {
    if (!transactional) continue
    const offsets = open.get(producer) ?? []
    if (ends === undefined) open.set(producer, [...offsets, offset])
    else open.delete(producer)
    if (ends === 'abort') for (const each of offsets) aborted.add(each)
  }
  return [[...open.values()].map(([first]) => first as number), aborted]
}

function placesOf(logs: ReadonlyMap<string, PartitionLog>): string {
  return [...logs].map(([name, { marks }]) => `${name} ${marks.start}-${marks.end}`).join(', ')
}

function described(story: Story, from: number): string {
  const moments = story.after
    .slice(from)
    .map(({ logs }) => [...logs].map(([name, { start, end }]) => `${name} ${start}-${end}`))
  return `no moment from step ${from} of ${story.steps} on: ${JSON.stringify(moments.slice(0, 3))}`
}
