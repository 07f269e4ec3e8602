/** A user's module that names what is public, compiled against the packed declarations alone. */
import type { Delivery, SubscribeOptions } from 'odradek'
import { OdradekError, openBroker } from 'odradek'
import { createBroker } from 'odradek/memory'
import { ManualClock } from 'odradek/testing'

interface Order {
  readonly customerId: string
  readonly total: number
}

const shippers: SubscribeOptions = { group: 'shippers', order: 'key', overflow: 'wait' }

export async function run(ship: (delivery: Delivery<Order>) => Promise<void>): Promise<number> {
  await using broker = await openBroker<{ orders: Order }>()
  const orders = await broker.createTopic('orders', { partitions: 4 })
  await orders.subscribe(ship, { id: 'worker-1', ...shippers })
  const { offset } = await orders.publish({ customerId: 'c', total: 1 }, { key: 'c' })
  return offset
}

export function isFull(error: unknown): boolean {
  return error instanceof OdradekError && error.code === 'FULL'
}

export const test = { broker: createBroker({ clock: new ManualClock() }) }
