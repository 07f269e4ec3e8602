/** Batches on a durable engine, which stores a mark before records are handed out. */
import { describe, expect, it } from 'vitest'
import { plainDisk } from '../support/disks.ts'
import { Machine } from '../support/durable.ts'

describe('a batch that fills while a mark is stored for its first record', () => {
  it('is given as a whole, with one more mark, in spite of what comes meanwhile', async () => {
    const machine = new Machine(plainDisk())
    const process = await machine.boot()
    const topic = await process.broker.createTopic<number>('orders')
    const batches: number[][] = []
    await topic.subscribe((batch) => void batches.push([...batch].map((d) => d.value)), {
      id: 'reader',
      batch: { records: 4, maxWaitMs: 100 },
    })
    const stores: (() => void)[] = []
    machine.beforePut = () => new Promise((resolve) => stores.push(resolve))
    const store = async (): Promise<void> => {
      for (const go of stores.splice(0)) go()
      await process.settle()
    }
    await topic.publish(0)
    await process.settle()
    await store()
    for (const value of [1, 2]) await topic.publish(value)
    await process.clock.advance(100)
    await topic.publish(3)
    await store()
    expect(batches).toEqual([[0, 1, 2]])
    machine.beforePut = () => {}
    await store()
    for (const value of [4, 5, 6]) await topic.publish(value)
    await process.clock.advance(200)
    expect(batches).toEqual([
      [0, 1, 2],
      [3, 4, 5, 6],
    ])
  })
})
