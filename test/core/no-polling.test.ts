/** Nobody polls and nothing spins: who has nothing to do asks nothing of the clock. */
import { describe, expect, it } from 'vitest'
import { createBroker } from '../../src/memory.ts'
import type { Timer } from '../../src/model/clock.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

/** Counts what the broker asks of it. */
class CountingClock extends ManualClock {
  asked = 0

  override setTimer(callback: () => void, delayMs: number): Timer {
    this.asked++
    return super.setTimer(callback, delayMs)
  }

  override nextTurn(callback: () => void): void {
    this.asked++
    super.nextTurn(callback)
  }
}

/** What is asked of the clock in a hundred turns of the event loop. */
async function askedMeanwhile(clock: CountingClock): Promise<number> {
  await clock.settle()
  const before = clock.asked
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
  return clock.asked - before
}

describe('a broker asks nothing of the clock', () => {
  it('while its readers are at the end of the log', async () => {
    const clock = new CountingClock()
    const broker = createBroker({ clock })
    const topic = await broker.createTopic('t', { partitions: 8 })
    for (const id of ['a', 'b']) await topic.subscribe(() => {}, { id, group: 'g' })
    for (let i = 0; i < 100; i++) await topic.publish(i)
    expect(await askedMeanwhile(clock)).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it('while a handler is at work, a retry is due later, and a reader has no credit', async () => {
    const clock = new CountingClock()
    const broker = createBroker({ clock })
    const topic = await broker.createTopic('t')
    await topic.subscribe(() => new Promise(() => {}), { id: 'slow' })
    await topic.subscribe(() => Promise.reject(new Error('again')), { id: 'failing' })
    await topic.subscribe(() => {}, { id: 'creditless', credit: 'manual' })
    for (let i = 0; i < 100; i++) await topic.publish(i)
    expect(await askedMeanwhile(clock)).toBe(0)
    expect(clock.pending).toBe(1)
  })

  it('while a publisher waits for room', async () => {
    const clock = new CountingClock()
    const broker = createBroker({ clock })
    const topic = await broker.createTopic('t', { retention: { records: 1 } })
    await topic.subscribe(() => {}, { id: 'r', credit: 'manual' })
    await topic.publish(0)
    void topic.publish(1)
    expect(await askedMeanwhile(clock)).toBe(0)
  })
})
