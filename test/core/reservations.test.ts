/** Marks that are being stored while the cursor moves. */
import { expect, it } from 'vitest'
import { Machine } from '../support/durable.ts'
import { Hands } from '../support/world.ts'

/** Turns of the event loop that a put takes. */
const turns = (n: number): Promise<void> =>
  n === 0 ? Promise.resolve() : new Promise((resolve) => setImmediate(() => resolve(turns(n - 1))))

it.each([0, 1, 2, 3])(
  'replays while marks are being stored for %i turns end in a delivery, and in a few puts',
  async (n) => {
    const machine = new Machine()
    const { broker, settle } = await machine.boot()
    await broker.createTopic('orders')
    const hands = new Hands()
    await broker.subscribe('orders', hands.take, { id: 'reader', from: 'earliest', ack: 'manual' })
    machine.beforePut = () => (machine.puts.length > 40 ? new Promise(() => {}) : turns(n))
    await broker.publish('orders', 0)
    const before = machine.puts.length
    for (let i = 0; i < 3; i++) {
      void broker.resetOffset('orders', 'reader', 0)
      await turns(1)
    }
    await turns(20)
    await settle()
    expect(hands.values.length).toBeGreaterThan(0)
    expect(machine.puts.length - before).toBeLessThan(20)
  },
)
