import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../src/testing/manual-clock.ts'

describe('ManualClock', () => {
  it('stands still until it is advanced', async () => {
    const clock = new ManualClock({ startMs: 5_000 })
    await clock.settle()
    expect([clock.now(), clock.monotonic()]).toEqual([5_000, 0])
    await clock.advance(250)
    expect([clock.now(), clock.monotonic()]).toEqual([5_250, 250])
  })

  it('starts at the same moment every time', () => {
    expect(new ManualClock().now()).toBe(Date.parse('2026-01-01T00:00:00Z'))
  })

  it('reads whole milliseconds of wall time and fractions of monotonic time', async () => {
    const clock = new ManualClock({ startMs: 0 })
    await clock.advance(1.5)
    expect([clock.now(), clock.monotonic()]).toEqual([1, 1.5])
  })

  it('fires timers in due order, ties in the order they were made, each at its own moment', async () => {
    const clock = new ManualClock()
    const fired: [string, number][] = []
    const at = (name: string, delayMs: number) =>
      clock.setTimer(() => fired.push([name, clock.monotonic()]), delayMs)
    at('late', 30)
    at('tie 1', 20)
    at('tie 2', 20)
    at('early', 10)
    at('beyond', 31)
    at('past', -5)
    await clock.advance(30)
    expect(fired).toEqual([
      ['past', 0],
      ['early', 10],
      ['tie 1', 20],
      ['tie 2', 20],
      ['late', 30],
    ])
    expect(clock.pending).toBe(1)
    expect(clock.nextTimerMs).toBe(1)
  })

  it('fires timers that were made inside the window, also those made turns after another fired', async () => {
    const clock = new ManualClock()
    const fired: [string, number][] = []
    clock.setTimer(async () => {
      fired.push(['first', clock.monotonic()])
      await null
      for (let i = 0; i < 20; i++) await new Promise<void>((resolve) => clock.nextTurn(resolve))
      clock.setTimer(() => fired.push(['second', clock.monotonic()]), 5)
    }, 10)
    clock.setTimer(() => fired.push(['third', clock.monotonic()]), 20)
    await clock.advance(20)
    expect(fired).toEqual([
      ['first', 10],
      ['second', 15],
      ['third', 20],
    ])
  })

  it('settles work that was started before the advance, so that its timers count from then', async () => {
    const clock = new ManualClock()
    let firedAt = -1
    clock.nextTurn(() => {
      clock.setTimer(() => {
        firedAt = clock.monotonic()
      }, 10)
    })
    await clock.advance(10)
    expect(firedAt).toBe(10)
  })

  it('does not fire a cancelled timer, and cancelling twice or late is harmless', async () => {
    const clock = new ManualClock()
    let fired = 0
    const cancelled = clock.setTimer(() => fired++, 10)
    const kept = clock.setTimer(() => fired++, 10)
    cancelled.cancel()
    cancelled.cancel()
    expect(clock.pending).toBe(1)
    await clock.advance(10)
    kept.cancel()
    expect(fired).toBe(1)
    expect(clock.nextTimerMs).toBe(Number.POSITIVE_INFINITY)
  })

  it('moves the wall alone, backwards too, and timers do not notice', async () => {
    const clock = new ManualClock({ startMs: 10_000 })
    let firedAt = -1
    clock.setTimer(() => {
      firedAt = clock.monotonic()
    }, 100)
    await clock.advance(40)
    clock.setWall(3_000)
    expect([clock.now(), clock.monotonic()]).toEqual([3_000, 40])
    await clock.advance(60)
    expect([clock.now(), firedAt]).toEqual([3_060, 100])
  })

  it('runs a chain of timers to its end', async () => {
    const clock = new ManualClock()
    let left = 3
    const renew = (): void => {
      if (--left > 0) clock.setTimer(renew, 1_000)
    }
    clock.setTimer(renew, 1_000)
    expect(await clock.runAll()).toBe(3)
    expect([clock.pending, clock.monotonic()]).toEqual([0, 3_000])
  })

  it('refuses to run a timer that renews itself for ever', async () => {
    const clock = new ManualClock()
    const renew = (): void => void clock.setTimer(renew, 1)
    renew()
    await expect(clock.runAll(50)).rejects.toThrow('after 50')
    expect(clock.monotonic()).toBe(50)
  })

  it('rejects with what a timer throws, standing at its moment, and goes on afterwards', async () => {
    const clock = new ManualClock()
    let later = false
    clock.setTimer(() => {
      throw new Error('boom')
    }, 10)
    clock.setTimer(() => {
      later = true
    }, 20)
    await expect(clock.advance(30)).rejects.toThrow('boom')
    expect(clock.monotonic()).toBe(10)
    await clock.advance(10)
    expect(later).toBe(true)
  })

  it('is moved by one caller at a time, and only forwards', async () => {
    const clock = new ManualClock()
    const first = clock.advance(1)
    await expect(clock.advance(1)).rejects.toThrow('one caller')
    await first
    await expect(clock.advance(-1)).rejects.toThrow('-1')
    await expect(clock.advance(Number.NaN)).rejects.toThrow('NaN')
    expect(clock.monotonic()).toBe(1)
  })

  it('leaves code that never comes to rest running, after the turns it was given', async () => {
    const clock = new ManualClock({ maxTurns: 10 })
    let turns = 0
    let running = true
    const spin = (): void => {
      turns++
      if (running) clock.nextTurn(spin)
    }
    clock.nextTurn(spin)
    await clock.settle()
    expect(turns).toBe(10)
    running = false
    await clock.settle()
    expect(turns).toBe(11)
  })

  it('takes turns that are macrotasks: microtasks run before', async () => {
    const clock = new ManualClock()
    const seen: string[] = []
    clock.nextTurn(() => seen.push('turn'))
    void Promise.resolve()
      .then(() => null)
      .then(() => seen.push('microtask'))
    await clock.settle()
    expect(seen).toEqual(['microtask', 'turn'])
  })

  it('remembers whether the process would be held open', () => {
    const clock = new ManualClock()
    expect(clock.held).toBe(false)
    clock.hold(true)
    expect(clock.held).toBe(true)
    clock.hold(false)
    expect(clock.held).toBe(false)
  })
})
