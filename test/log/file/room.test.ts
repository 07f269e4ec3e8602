import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Marks } from '../../../src/log/contract.ts'
import { NO_ROOM } from '../../../src/log/contract.ts'
import { Extent } from '../../../src/log/file/extent.ts'
import { Room } from '../../../src/log/file/room.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** A log of records of `sizeBytes` each, all of them durable, as its room sees it. */
class Log {
  readonly marks: Marks = { start: 0, stable: 0, high: 0, end: 0, epoch: 0 }
  readonly room: Room
  readonly #sizeBytes: number
  moves = 0

  constructor(sizeBytes: number, maxBytes: number) {
    this.#sizeBytes = sizeBytes
    this.room = new Room(this.marks, new Extent(0))
    this.room.limit({ records: Number.POSITIVE_INFINITY, bytes: maxBytes, ageMs: Number.POSITIVE_INFINITY })
  }

  /** Whether there was room. */
  append(): boolean {
    const { marks, room } = this
    const start = room.for(1, this.#sizeBytes, 'gated')
    if (start === NO_ROOM) return false
    if (start > marks.start) {
      this.moves++
      marks.start = start
      room.trimmed(start)
    }
    marks.end++
    room.appended(this.#sizeBytes)
    return true
  }

  /** All of it is on the disk. */
  commit(): void {
    const { marks } = this
    const bytes = new Uint8Array((marks.end - marks.high) * this.#sizeBytes)
    const batch = {
      base: marks.high,
      next: marks.end,
      bytes,
      maxTimestamp: 0,
      foreign: false,
      control: false,
    }
    this.room.formed(bytes.length === 0 ? [] : [{ ...batch, aborts: null }])
    marks.high = marks.end
  }
}

describe('the room of a log', () => {
  it('gives up a little more than it must, so that it need not look for the start with every record', () => {
    const log = new Log(100, 8 * MiB)
    let most = 0
    for (let i = 0; i < 300_000; i++) {
      if (!log.append()) throw new Error(`no room for record ${i}`)
      if (i % 1_000 === 0) log.commit()
      most = Math.max(most, log.room.sizeBytes)
    }
    log.commit()
    expect(most).toBeLessThanOrEqual(8 * MiB)
    expect(log.room.sizeBytes).toBeGreaterThan(8 * MiB - 100 * KiB)
    expect(log.moves).toBeGreaterThan(100)
    expect(log.moves).toBeLessThan(300_000 / 50)
  })

  it('gives up exactly what it must where there is little of it', () => {
    const log = new Log(10, 1_000)
    for (let i = 0; i < 150; i++) {
      log.append()
      log.commit()
    }
    expect(log.marks).toMatchObject({ start: 50, end: 150 })
  })

  it('gives up nothing that a reader needs, or that is not durable, for the sake of looking less often', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 90_000 }),
        fc.integer({ min: 0, max: 90_000 }),
        (gate, durable) => {
          const log = new Log(100, 8 * MiB)
          log.room.gate = gate
          for (let i = 0; i < 84_000; i++) {
            if (!log.append()) break
            if (i === durable) log.commit()
          }
          expect(log.marks.start).toBeLessThanOrEqual(Math.min(gate, log.marks.high))
        },
      ),
      { numRuns: 20 },
    )
  })
})
