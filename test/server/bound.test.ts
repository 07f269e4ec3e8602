/** How many of something there may be. */
import { describe, expect, it } from 'vitest'
import type { Logger } from '../../src/model/views.ts'
import { Bound } from '../../src/server/bound.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

function logTo(lines: string[]): Logger {
  const add =
    (level: string) =>
    (_: object, message: string): void =>
      void lines.push(`${level} ${message}`)
  return { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') }
}

class Room {
  there = 0
  counts = 0
  readonly clock = new ManualClock()
  readonly lines: string[] = []
  readonly bound: Bound

  constructor(max: number) {
    const count = (): number => {
      this.counts++
      return this.there
    }
    this.bound = new Bound({ option: 'maxThings', max, count }, this.clock, logTo(this.lines))
  }

  make(more: number): boolean {
    const isAdmitted = this.bound.admits(more)
    if (isAdmitted) this.there += more
    return isAdmitted
  }
}

describe('a bound', () => {
  it('counts what there is once, and then what comes', () => {
    const room = new Room(10)
    room.there = 4
    expect([room.make(3), room.make(3), room.make(1)]).toEqual([true, true, false])
    expect(room.counts).toBe(1)
  })

  it('takes what brings nothing, also where it is reached', () => {
    const room = new Room(1)
    expect([room.make(1), room.make(0), room.make(-3)]).toEqual([true, true, true])
  })

  it('notices what went, but counts no more than once in ten seconds', async () => {
    const room = new Room(10)
    room.make(10)
    room.there = 5
    for (let i = 0; i < 100; i++) expect(room.make(1)).toBe(false)
    expect(room.counts).toBe(1)
    await room.clock.advance(10_000)
    expect(room.make(5)).toBe(true)
    expect(room.make(1)).toBe(false)
    expect(room.counts).toBe(2)
  })

  it('counts what is being made and is not there yet', async () => {
    const room = new Room(10)
    let finish = (): void => {}
    const making = room.bound.making(10, () => new Promise<void>((resolve) => (finish = resolve)))
    await room.clock.advance(60_000)
    expect(room.bound.admits(1)).toBe(false)
    expect(room.counts).toBe(2)
    finish()
    await making
    await room.clock.advance(60_000)
    expect(room.bound.admits(1)).toBe(true)
  })

  it('has room again where making failed', async () => {
    const room = new Room(1)
    await expect(room.bound.making(1, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    await room.clock.advance(10_000)
    expect(room.make(1)).toBe(true)
  })

  it('says what it is, to the client and, not too often, to the log', async () => {
    const room = new Room(1)
    room.make(1)
    await room.clock.advance(10_000)
    for (let i = 0; i < 5; i++) room.make(1)
    const reason = 'there are as many as this server allows: maxThings is 1'
    expect(room.lines).toEqual([`warn clients are refused: ${reason}`])
    await expect(room.bound.making(1, () => Promise.resolve())).rejects.toThrow(reason)
  })
})
