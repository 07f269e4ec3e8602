/** Room against a model that knows every record, over random lives of a log. */
import { describe, expect, it } from 'vitest'
import { type Marks, NO_ROOM, type RetentionLimits, type RoomMode } from '../../../src/log/contract.ts'
import { Extent } from '../../../src/log/file/extent.ts'
import type { PendingBatch } from '../../../src/log/file/pending.ts'
import { Room } from '../../../src/log/file/room.ts'
import { Dice } from '../../torture/dice.ts'

const KiB = 1024
const FOR_EVER = Number.POSITIVE_INFINITY

/** A log without records: offsets and sizes, of which the newest are not formed, or not durable. */
class Life {
  readonly marks: Marks = { start: 0, stable: 0, high: 0, end: 0, epoch: 0 }
  readonly room: Room
  limits: RetentionLimits
  /** By offset, as they were said to be, and as they turned out. */
  readonly sizes: number[] = []
  formedEnd = 0
  largestBatch = 0
  readonly #dice: Dice

  constructor(dice: Dice, limits: RetentionLimits, origin = 0) {
    this.#dice = dice
    this.limits = limits
    Object.assign(this.marks, { start: origin, stable: origin, high: origin, end: origin })
    this.formedEnd = origin
    this.sizes.length = origin
    this.room = new Room(this.marks, new Extent(origin))
    this.room.limit(limits)
  }

  append(records: number, bytes: number, mode: RoomMode): number {
    const start = this.room.for(records, bytes, mode)
    if (start === NO_ROOM) return start
    this.trim(start)
    for (let i = 0; i < records; i++) this.sizes.push(bytes / records)
    this.marks.end += records
    this.room.appended(bytes)
    return start
  }

  /** Batches of what is pending turn out a little larger or smaller than was said. */
  form(): void {
    const batches: PendingBatch[] = []
    for (let base = this.formedEnd; base < this.marks.end; ) {
      const next = Math.min(this.marks.end, base + 1 + this.#dice.below(8))
      const said = this.sizes.slice(base, next).reduce((sum, size) => sum + size, 0)
      const sizeBytes = 61 + Math.floor(said * (0.7 + this.#dice.share() / 2))
      this.sizes.fill(sizeBytes / (next - base), base, next)
      this.largestBatch = Math.max(this.largestBatch, sizeBytes)
      const bytes = new Uint8Array(sizeBytes)
      batches.push({
        bytes,
        base,
        next,
        maxTimestamp: 0,
        foreign: false,
        control: false,
        aborts: null,
        slab: null,
      })
      base = next
    }
    this.formedEnd = this.marks.end
    this.room.formed(batches)
  }

  commit(): void {
    this.marks.high = this.marks.stable = this.formedEnd
  }

  trim(start: number): void {
    if (start <= this.marks.start) return
    this.marks.start = start
    this.room.trimmed(start)
  }

  sizeFrom(offset: number): number {
    return this.sizes.slice(offset).reduce((sum, size) => sum + size, 0)
  }
}

function liveOn(life: Life, dice: Dice, check: (life: Life) => void, steps: number): void {
  for (let step = 0; step < steps; step++) {
    const { marks } = life
    const act = dice.below(12)
    if (act < 7) {
      const records = dice.chance(0.8) ? 1 : 1 + dice.below(12)
      const bytes = records * (1 + dice.below(dice.chance(0.05) ? 60 * KiB : 700))
      life.append(records, bytes, dice.pick(['gated', 'gated', 'exempt', 'force']))
    } else if (act < 9) life.form()
    else if (act === 9) life.commit()
    else if (act === 10) life.trim(Math.min(marks.start + dice.below(5), marks.high))
    else if (dice.chance(0.3)) life.room.gate = FOR_EVER
    else
      life.room.gate = Math.max(
        life.room.gate === FOR_EVER ? 0 : life.room.gate,
        marks.start + dice.below(20),
      )
    check(life)
  }
}

/** What `for` answers, from what else the room says. */
function checkAnswers({ room, marks, limits }: Life, dice: Dice): void {
  const { start, end, high } = marks
  const records = 1 + dice.below(3)
  const bytes = dice.below(Math.min(limits.bytes, 200 * KiB) + 100)
  const within = (from: number, factor = 1, moreBytes = 0): boolean =>
    end - from + records <= limits.records * factor &&
    room.bytesFrom(from) + bytes + moreBytes <= limits.bytes * factor
  const isTooLarge = records > limits.records || bytes > limits.bytes
  expect(room.isTooLarge(records, bytes)).toBe(isTooLarge)

  // By bytes it goes in steps, as far as nothing is in the way.
  const slackBytes = Math.min(Math.floor(limits.bytes / 1024), 32 * KiB)
  const lowest = lowestOf(start, high, within)
  const withSlack = lowestOf(start, end, (from) => within(from, 1, slackBytes)) ?? end
  const answer = (mode: RoomMode): number => {
    if (isTooLarge || lowest === undefined || (mode === 'gated' && lowest > Math.max(room.gate, start)))
      return NO_ROOM
    return lowest === start && within(start) ? start : Math.max(lowest, Math.min(withSlack, room.gate, high))
  }
  expect(room.for(records, bytes, 'force')).toBe(answer('force'))
  const gated = room.for(records, bytes, 'gated')
  expect(gated).toBe(answer('gated'))
  const exempt = room.for(records, bytes, 'exempt')
  if (gated !== NO_ROOM) expect(exempt).toBe(gated)
  else {
    const allowed = Math.min(Math.max(start, room.gate), high)
    expect(exempt).toBe(!isTooLarge && within(allowed, 2) ? allowed : NO_ROOM)
  }
}

function lowestOf(from: number, to: number, fits: (offset: number) => boolean): number | undefined {
  for (let offset = from; offset <= to; offset++) if (fits(offset)) return offset
  return undefined
}

function checkSizes(life: Life): void {
  const { room, marks } = life
  const { start, end } = marks
  expect(room.sizeBytes).toBe(room.bytesFrom(start))
  expect([room.bytesFrom(0), room.bytesFrom(end), room.bytesFrom(end + 1)]).toEqual([room.sizeBytes, 0, 0])
  let before = room.sizeBytes
  for (let offset = start; offset <= end; offset++) {
    const bytes = room.bytesFrom(offset)
    expect(bytes).toBeLessThanOrEqual(before)
    expect(bytes).toBeGreaterThanOrEqual(0)
    before = bytes
  }
  // Exact at points that are so far apart; what is pending counts as it was said.
  const error = Math.abs(room.sizeBytes - life.sizeFrom(start))
  expect(error).toBeLessThanOrEqual(32 * KiB + life.largestBatch)
}

describe('the room of a log', () => {
  it.each([
    ['records', { records: 20, bytes: FOR_EVER, ageMs: FOR_EVER }],
    ['bytes', { records: FOR_EVER, bytes: 100 * KiB, ageMs: FOR_EVER }],
    ['next to no bytes', { records: FOR_EVER, bytes: 1 * KiB, ageMs: FOR_EVER }],
    ['both', { records: 300, bytes: 100 * KiB, ageMs: FOR_EVER }],
  ])('agrees with itself and with every record, where %s bound it', (_, limits) => {
    for (let seed = 1; seed <= 8; seed++) {
      const dice = new Dice(seed)
      const life = new Life(dice, limits, dice.pick([0, 1000]))
      liveOn(
        life,
        dice,
        (each) => {
          checkAnswers(each, dice)
          if (dice.chance(0.05)) checkSizes(each)
        },
        400,
      )
    }
  })

  it('is exact to the record where only records bound it', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const dice = new Dice(seed)
      const life = new Life(dice, { records: 10, bytes: FOR_EVER, ageMs: FOR_EVER })
      for (let i = 0; i < 300; i++) {
        const { start, end, high } = life.marks
        const records = 1 + dice.below(4)
        const wanted = Math.max(start, end + records - 10)
        expect(life.append(records, 100 * records, 'gated')).toBe(wanted <= high ? wanted : NO_ROOM)
        if (dice.chance(0.4)) life.form()
        if (dice.chance(0.4)) life.commit()
      }
    }
  })

  it('begins with what segments hold, and never counts less than nothing', () => {
    const marks: Marks = { start: 50, stable: 50, high: 100, end: 100, epoch: 0 }
    const extent = new Extent(0)
    extent.append(100, 200 * KiB)
    const room = new Room(marks, extent)
    room.limit({ records: FOR_EVER, bytes: 150 * KiB, ageMs: FOR_EVER })
    expect([room.sizeBytes, room.bytesFrom(75), room.startWithin()]).toEqual([100 * KiB, 50 * KiB, 50])
    room.limit({ records: FOR_EVER, bytes: 50 * KiB, ageMs: FOR_EVER })
    expect(room.startWithin()).toBe(75)
    // Far more is said than turns out, while everything before goes.
    marks.end = 101
    room.appended(300 * KiB)
    expect(room.startWithin()).toBe(101)
    marks.start = 100
    room.trimmed(100)
    expect(room.sizeBytes).toBe(300 * KiB)
    room.formed([
      {
        bytes: new Uint8Array(80),
        base: 100,
        next: 101,
        maxTimestamp: 0,
        foreign: false,
        control: false,
        aborts: null,
        slab: null,
      },
    ])
    expect([room.sizeBytes, room.bytesFrom(100), room.bytesFrom(101)]).toEqual([80, 80, 0])
  })
})
