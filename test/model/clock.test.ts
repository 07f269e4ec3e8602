import { describe, expect, it, vi } from 'vitest'
import { SystemClock } from '../../src/model/clock.ts'

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** Timers that keep this process alive. */
function holding(): number {
  return process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length
}

/** Blocks until the wall clock has moved on. */
function waitForNextMs(): number {
  const from = Date.now()
  let now = from
  while (now === from) now = Date.now()
  return now
}

describe('the system clock', () => {
  it('answers the wall time, as it is, to those who ask now and then', async () => {
    const clock = new SystemClock()
    for (let i = 0; i < 40; i++) {
      const now = waitForNextMs()
      expect(clock.now()).toBeGreaterThanOrEqual(now)
      await turn()
    }
  })

  it('takes one reading for many calls of one turn, and another in the next', async () => {
    const clock = new SystemClock()
    for (let i = 0; i < 20; i++) clock.now()
    const coarse = clock.now()
    const later = waitForNextMs()
    expect(clock.now()).toBe(coarse)
    await turn()
    expect(clock.now()).toBeGreaterThanOrEqual(later)
  })

  it('takes another reading also within a turn that is asked for ever', () => {
    const clock = new SystemClock()
    for (let i = 0; i < 20; i++) clock.now()
    const later = waitForNextMs()
    let now = 0
    for (let i = 0; i < 64; i++) now = clock.now()
    expect(now).toBeGreaterThanOrEqual(later)
  })

  it('keeps the process alive while any clock holds it, and leaves no timer of its own behind', () => {
    const before = holding()
    const one = new SystemClock()
    const other = new SystemClock()
    one.hold(true)
    one.hold(true)
    expect(holding()).toBe(before + 1)
    other.hold(true)
    one.hold(false)
    expect(holding()).toBe(before + 1)
    other.hold(false)
    other.hold(false)
    expect(holding()).toBe(before)
    one.hold(true)
    expect(holding()).toBe(before + 1)
    one.hold(false)
    expect(holding()).toBe(before)
  })
})

describe('the system clock where timers are numbers', () => {
  it('holds by a timer that is made and cleared', async () => {
    vi.resetModules()
    const { SystemClock } = await import('../../src/model/clock.ts')
    const { setInterval: set, clearInterval: clear } = globalThis
    const timers: number[] = []
    globalThis.setInterval = (() => timers.push(1)) as unknown as typeof setInterval
    globalThis.clearInterval = (() => timers.pop()) as unknown as typeof clearInterval
    try {
      const clock = new SystemClock()
      for (let i = 0; i < 2; i++) {
        clock.hold(true)
        expect(timers).toHaveLength(1)
        clock.hold(false)
        expect(timers).toHaveLength(0)
      }
    } finally {
      globalThis.setInterval = set
      globalThis.clearInterval = clear
    }
  })
})
