/** A memory log against the simplest thing that could be right: an array, and retention by the letter. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NO_ROOM, type RoomMode } from '../../../src/log/contract.ts'
import { MemoryLog } from '../../../src/log/memory/memory-log.ts'
import { batchOf, marksOf, readRows, specOf, T0, wireBatchOf } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

interface Kept {
  readonly offset: number
  readonly value: unknown
  readonly key: string | null
  readonly timestamp: number
  /** Of the whole batch for wire batches: they age together. */
  readonly newest: number
  readonly sizeBytes: number
}

/** Says what the log must be. Everything is recounted for every question. */
class Model {
  kept: Kept[] = []
  end = 0
  gate = Number.POSITIVE_INFINITY
  stamped = 0
  records: number
  bytes: number

  constructor(records: number, bytes: number) {
    this.records = records
    this.bytes = bytes
  }

  get start(): number {
    return this.kept[0]?.offset ?? this.end
  }

  get sizeBytes(): number {
    return sum(this.kept)
  }

  /** What stays when this much is to come, or null. */
  roomFor(count: number, sizeBytes: number, mode: RoomMode): Kept[] | null {
    if (count > this.records || sizeBytes > this.bytes) return null
    const fits = (kept: Kept[], factor: number): boolean =>
      kept.length + count <= this.records * factor && sum(kept) + sizeBytes <= this.bytes * factor
    const mayGo = (record: Kept): boolean => mode === 'force' || record.offset < this.gate
    let kept = this.kept
    while (!fits(kept, 1) && kept.length > 0 && mayGo(kept[0] as Kept)) kept = kept.slice(1)
    return fits(kept, 1) || (mode === 'exempt' && fits(kept, 2)) ? kept : null
  }

  append(added: Omit<Kept, 'offset'>[], mode: RoomMode): boolean {
    const kept = this.roomFor(added.length, sum(added), mode)
    if (kept === null) return false
    this.kept = [...kept, ...added.map((record, i) => ({ ...record, offset: this.end + i }))]
    this.end += added.length
    return true
  }

  dropWhile(drop: (record: Kept) => boolean): void {
    while (this.kept.length > 0 && this.start < this.gate && drop(this.kept[0] as Kept)) {
      this.kept = this.kept.slice(1)
    }
  }

  shrink(): void {
    this.dropWhile(() => this.kept.length > this.records || this.sizeBytes > this.bytes)
  }
}

const sum = (records: readonly { sizeBytes: number }[]): number =>
  records.reduce((total, record) => total + record.sizeBytes, 0)

const mode = fc.constantFrom<RoomMode>('gated', 'gated', 'exempt', 'force')
const row = fc.record({
  sizeBytes: fc.integer({ min: 1, max: 120 }),
  ms: fc.integer({ min: -3, max: 8 }),
  key: fc.constantFrom(null, 'a', 'b'),
})
const rows = fc.array(row, { minLength: 1, maxLength: 12 })
const times = fc.constantFrom(1, 1, 3, 40)
const distance = fc.oneof(fc.integer({ min: -2, max: 12 }), fc.integer({ min: 50, max: 200 }))
/** Small ones have segments of a row or two, large ones of up to twenty. */
const records = fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 100, max: 300 }))
const bytes = fc.oneof(fc.integer({ min: 100, max: 2000 }), fc.integer({ min: 10_000, max: 40_000 }))

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('one' as const), row, mode, times }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('rows' as const), rows, mode }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wire' as const), rows, mode }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('gate' as const), back: fc.option(distance) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('trim' as const), ahead: distance }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), ms: distance }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), records, bytes }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
type MadeRow = typeof row extends fc.Arbitrary<infer T> ? T : never

const AGE_MS = 50

function newLog(records: number, bytes: number): MemoryLog {
  const clock = new ManualClock({ startMs: 0 })
  return new MemoryLog(specOf({ records, bytes, ageMs: AGE_MS }), { clock })
}

let counter = 0

function appendOne({ sizeBytes, ms, key }: MadeRow, mode: RoomMode, log: MemoryLog, model: Model): void {
  const value = counter++
  const timestamp = T0 + model.end + ms
  const room = model.roomFor(1, sizeBytes, mode) !== null
  expect(log.hasRoom(1, sizeBytes, mode)).toBe(room)
  const expected = room ? model.end : NO_ROOM
  if (room) {
    model.stamped = Math.max(model.stamped, timestamp)
    model.append([{ value, key, sizeBytes, timestamp: model.stamped, newest: model.stamped }], mode)
  }
  expect(log.tryAppendOne(value, key, null, timestamp, sizeBytes, mode)).toBe(expected)
}

/** Does a step to both, and compares the answers. */
async function take(step: Step, log: MemoryLog, model: Model): Promise<void> {
  const made = (rows: readonly MadeRow[]) =>
    rows.map(({ sizeBytes, ms, key }) => {
      return { value: counter++, key, sizeBytes, timestamp: T0 + model.end + ms }
    })

  switch (step.do) {
    case 'one':
      for (let i = 0; i < step.times; i++) appendOne(step.row, step.mode, log, model)
      return
    case 'rows': {
      const rows = made(step.rows)
      const room = model.roomFor(rows.length, sum(rows), step.mode) !== null
      const ending = model.end
      if (room) {
        const stamped = rows.map((each) => {
          model.stamped = Math.max(model.stamped, each.timestamp)
          return { ...each, timestamp: model.stamped, newest: model.stamped }
        })
        model.append(stamped, step.mode)
      }
      const answer = log.tryAppend(batchOf(rows), step.mode)
      if (room) expect(answer).toEqual({ base: ending, last: model.end - 1, duplicate: false })
      else expect(['NO_ROOM', 'TOO_LARGE']).toContain(answer)
      return
    }
    case 'wire': {
      const rows = made(step.rows)
      const batch = wireBatchOf(rows)
      const sizeBytes = sum(rows)
      const newest = Math.max(...rows.map((each) => each.timestamp))
      const share = (i: number): number => Math.floor((sizeBytes * i) / rows.length)
      const kept = rows.map((each, i) => ({ ...each, newest, sizeBytes: share(i + 1) - share(i) }))
      const room = model.append(kept, step.mode)
      const answer = log.tryAppend({ ...batch, sizeBytes }, step.mode)
      if (room)
        expect(answer).toEqual({ base: model.end - rows.length, last: model.end - 1, duplicate: false })
      else expect(['NO_ROOM', 'TOO_LARGE']).toContain(answer)
      return
    }
    case 'gate':
      model.gate = step.back === null ? Number.POSITIVE_INFINITY : Math.max(0, model.end - step.back)
      model.shrink()
      log.gate(model.gate)
      return
    case 'trim': {
      const before = model.start + step.ahead
      model.dropWhile((record) => record.offset < before)
      await log.trim(before)
      return
    }
    case 'expire':
      expire(model, T0 + model.end + step.ms)
      log.expire(T0 + model.end + step.ms)
      return
    case 'limit':
      model.records = step.records
      model.bytes = step.bytes
      model.shrink()
      log.configure({ records: step.records, bytes: step.bytes, ageMs: AGE_MS })
  }
}

function expire(model: Model, now: number): void {
  model.dropWhile((record) => record.newest < now - AGE_MS)
}

async function compare(log: MemoryLog, model: Model): Promise<void> {
  const { start, end } = model
  expect(marksOf(log)).toEqual({ start, stable: end, high: end, end, epoch: 0 })
  expect([log.records, log.sizeBytes]).toEqual([model.kept.length, model.sizeBytes])
  const { rows, next } = await readRows(log, start, 'committed', 3)
  expect(next).toBe(end)
  expect(rows.map(({ offset, value, key, timestamp }) => ({ offset, value, key, timestamp }))).toEqual(
    model.kept.map(({ offset, value, key, timestamp }) => ({ offset, value, key, timestamp })),
  )
}

describe('a memory log', () => {
  it('is an array whose oldest records give way, whatever is done to it', async () => {
    await fc.assert(
      fc.asyncProperty(records, bytes, fc.array(step, { maxLength: 50 }), async (records, bytes, steps) => {
        const log = newLog(records, bytes)
        const model = new Model(records, bytes)
        for (const each of steps) {
          const before = marksOf(log)
          let woken = 0
          const stop = log.onAdvance(() => woken++)
          await take(each, log, model)
          stop()
          await compare(log, model)
          const moved = before.start !== log.marks.start || before.end !== log.marks.end
          expect(woken > 0).toBe(moved)
        }
      }),
      { numRuns: 200, seed: 20_260_101 },
    )
  })

  it('finds by time what a scan would find', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: -5, max: 400 }),
        async (steps, ms) => {
          const log = newLog(150, 9000)
          const model = new Model(150, 9000)
          for (const each of steps) await take(each, log, model)
          const first = model.kept.find((record) => record.timestamp >= T0 + ms)
          expect((await log.offsetAt(T0 + ms))?.offset).toBe(first?.offset)
          const newest = Math.max(...model.kept.map((record) => record.timestamp))
          expect((await log.newest())?.offset).toBe(
            model.kept.find((record) => record.timestamp === newest)?.offset,
          )
        },
      ),
      { numRuns: 200, seed: 20_260_102 },
    )
  })
})
