import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Due, DueQueue } from '../../src/core/due-queue.ts'
import type { Timer } from '../../src/model/clock.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

class Note extends Due {
  readonly #run: () => void
  constructor(run: () => void) {
    super()
    this.#run = run
  }
  override fire(): void {
    this.#run()
  }
}

/** A queue on a manual clock; `note(name)` makes a due thing that logs its name and the time. */
function setup() {
  const clock = new ManualClock()
  const errors: unknown[] = []
  const log: string[] = []
  const queue = new DueQueue(clock, (error) => errors.push(error))
  const note = (name: string, run?: () => void): Note =>
    new Note(() => {
      log.push(`${name}@${clock.monotonic()}`)
      run?.()
    })
  return { clock, errors, log, queue, note }
}

describe('due queue', () => {
  it('fires in due order, ties in the order they were scheduled', async () => {
    const { clock, log, queue, note } = setup()
    queue.schedule(note('c'), 30)
    queue.schedule(note('a'), 10)
    queue.schedule(note('b1'), 20)
    queue.schedule(note('b2'), 20)
    queue.schedule(note('b3'), 20)
    expect(queue.size).toBe(5)
    await clock.advance(25)
    expect(log).toEqual(['a@10', 'b1@20', 'b2@20', 'b3@20'])
    expect(queue.size).toBe(1)
    await clock.advance(5)
    expect(log.at(-1)).toBe('c@30')
    expect(clock.pending).toBe(0)
  })

  it('keeps one timer, armed for the earliest', () => {
    const { clock, queue, note } = setup()
    for (const at of [50, 40, 60, 10, 70]) queue.schedule(note(`${at}`), at)
    expect(clock.pending).toBe(1)
    expect(clock.nextTimerMs).toBe(10)
  })

  it('leaves the timer alone when the earliest is cancelled, and arms it anew when it fires early', async () => {
    const { clock, log, queue, note } = setup()
    const first = note('first')
    queue.schedule(first, 10)
    queue.schedule(note('second'), 40)
    queue.cancel(first)
    expect(clock.nextTimerMs).toBe(10)
    await clock.advance(10)
    expect(log).toEqual([])
    expect(clock.nextTimerMs).toBe(30)
    await clock.advance(30)
    expect(log).toEqual(['second@40'])
  })

  it('makes no timer for a thing scheduled and cancelled behind an earlier one', () => {
    const { clock, queue, note } = setup()
    let made = 0
    const original = clock.setTimer.bind(clock)
    clock.setTimer = (callback, delayMs): Timer => {
      made++
      return original(callback, delayMs)
    }
    queue.schedule(note('head'), 10)
    for (let i = 0; i < 100; i++) {
      const due = note('x')
      queue.schedule(due, 20 + i)
      queue.cancel(due)
    }
    expect(made).toBe(1)
  })

  it('does not fire what was cancelled, and cancelling twice is harmless', async () => {
    const { clock, log, queue, note } = setup()
    const due = note('x')
    queue.cancel(due)
    queue.schedule(due, 10)
    expect(due.heapIndex).toBe(0)
    queue.cancel(due)
    queue.cancel(due)
    expect(due.heapIndex).toBe(-1)
    await clock.advance(20)
    expect([log, queue.size, clock.pending]).toEqual([[], 0, 0])
  })

  it('moves a queued thing, earlier and later, instead of queueing it twice', async () => {
    const { clock, log, queue, note } = setup()
    const later = note('later')
    const earlier = note('earlier')
    queue.schedule(later, 10)
    queue.schedule(earlier, 50)
    queue.schedule(later, 40)
    queue.schedule(earlier, 5)
    expect(queue.size).toBe(2)
    await clock.advance(100)
    expect(log).toEqual(['earlier@5', 'later@40'])
  })

  it('fires what is already due in the next turn of the clock', async () => {
    const { clock, log, queue, note } = setup()
    await clock.advance(100)
    queue.schedule(note('past'), 20)
    expect(log).toEqual([])
    expect(clock.nextTimerMs).toBe(0)
    await clock.advance(0)
    expect(log).toEqual(['past@100'])
  })

  it('lets an error stop nothing, and reports it', async () => {
    const { clock, errors, log, queue, note } = setup()
    const failure = new Error('mine')
    queue.schedule(
      note('bad', () => {
        throw failure
      }),
      10,
    )
    queue.schedule(note('good'), 10)
    queue.schedule(note('later'), 20)
    await clock.advance(20)
    expect(log).toEqual(['bad@10', 'good@10', 'later@20'])
    expect(errors).toEqual([failure])
  })

  it('leaves what is scheduled during a firing and already due to the next firing', async () => {
    const { clock, log, queue, note } = setup()
    const firings: number[] = []
    let firing = 0
    const original = clock.setTimer.bind(clock)
    clock.setTimer = (callback, delayMs): Timer =>
      original(() => {
        firing++
        callback()
      }, delayMs)
    const again = note('again', () => {
      firings.push(firing)
      if (firings.length < 4) queue.schedule(again, 0)
    })
    queue.schedule(again, 10)
    queue.schedule(
      note('other', () => firings.push(firing)),
      10,
    )
    await clock.advance(10)
    expect(log).toEqual(['again@10', 'other@10', 'again@10', 'again@10'])
    expect(firings).toEqual([1, 1, 2, 3])
  })

  it('lets one that fires cancel or move another that is due in the same firing', async () => {
    const { clock, log, queue, note } = setup()
    const cancelled = note('cancelled')
    const moved = note('moved')
    queue.schedule(
      note('first', () => {
        queue.cancel(cancelled)
        queue.schedule(moved, 30)
      }),
      10,
    )
    queue.schedule(cancelled, 10)
    queue.schedule(moved, 10)
    await clock.advance(50)
    expect(log).toEqual(['first@10', 'moved@30'])
  })

  it('arms once per firing, however much is scheduled in it', async () => {
    const { clock, queue, note } = setup()
    queue.schedule(
      note('first', () => {
        for (const at of [90, 70, 50]) queue.schedule(note(`${at}`), at)
        expect(clock.pending).toBe(0)
      }),
      10,
    )
    await clock.advance(10)
    expect(clock.pending).toBe(1)
    expect(clock.nextTimerMs).toBe(40)
  })

  it('keeps what is never due without a timer', async () => {
    const { clock, queue, note } = setup()
    const never = note('never')
    queue.schedule(never, Number.POSITIVE_INFINITY)
    expect([queue.size, clock.pending]).toEqual([1, 0])
    queue.schedule(note('once'), 5)
    await clock.advance(5)
    expect([queue.size, clock.pending]).toEqual([1, 0])
  })

  it('calls back after a delay, unless cancelled', async () => {
    const { clock, queue } = setup()
    await clock.advance(100)
    const calls: number[] = []
    queue.after(10, () => calls.push(clock.monotonic()))
    const cancelled = queue.after(5, () => calls.push(-1))
    queue.cancel(cancelled)
    await clock.advance(50)
    expect(calls).toEqual([110])
  })

  it('forgets all when closed, from inside a firing too, and ignores what comes later', async () => {
    const { clock, log, queue, note } = setup()
    const rest = note('rest')
    queue.schedule(
      note('closer', () => queue.close()),
      10,
    )
    queue.schedule(rest, 10)
    await clock.advance(10)
    queue.schedule(rest, 20)
    expect([rest.heapIndex, queue.size, clock.pending]).toEqual([-1, 0, 0])
    await clock.advance(50)
    expect(log).toEqual(['closer@10'])
  })

  it('cancels its timer when closed', () => {
    const { clock, queue, note } = setup()
    queue.schedule(note('x'), 10)
    queue.close()
    queue.close()
    expect([queue.size, clock.pending]).toEqual([0, 0])
  })

  it('refuses a time that is not a number, and a thing of another queue', () => {
    const { clock, queue, note } = setup()
    expect(() => queue.schedule(note('x'), Number.NaN)).toThrow('not a number')
    const other = new DueQueue(clock, () => {})
    const due = note('theirs')
    other.schedule(due, 10)
    expect(() => queue.cancel(due)).toThrow('another queue')
  })

  it('agrees with a sorted list under any run of schedules, moves and cancels', async () => {
    const step = fc.record({
      thing: fc.nat(15),
      at: fc.option(fc.integer({ min: 1, max: 30 }), { nil: null }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { clock, log, queue, note } = setup()
        const things = Array.from({ length: 16 }, (_, i) => note(`${i}`))
        const model = new Map<number, { at: number; turn: number }>()
        steps.forEach(({ thing, at }, turn) => {
          if (at === null) {
            queue.cancel(things[thing] as Note)
            model.delete(thing)
          } else {
            queue.schedule(things[thing] as Note, at)
            model.set(thing, { at, turn })
          }
          expect(queue.size).toBe(model.size)
          expect(clock.pending).toBeLessThanOrEqual(1)
        })
        const expected = [...model].sort(([, a], [, b]) => a.at - b.at || a.turn - b.turn)
        // Every moment has its own firing: the manual clock lands on each due time.
        for (let ms = 0; ms < 30; ms++) await clock.advance(1)
        expect(log).toEqual(expected.map(([thing, { at }]) => `${thing}@${at}`))
        expect([queue.size, clock.pending]).toEqual([0, 0])
        expect(things.every((thing) => thing.heapIndex === -1)).toBe(true)
      }),
      { numRuns: 30 },
    )
  })
})
