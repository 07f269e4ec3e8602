/** Keyed orders over four partitions to two readers that each must see every offset, in order, once. */
import { type OpenWorkload, STEP } from './workload.ts'

const PARTITIONS = 4

interface Order {
  readonly id: number
  readonly customer: string
  readonly items: readonly number[]
}

export const broadcast: OpenWorkload = async (broker) => {
  const topic = await broker.createTopic<Order>('orders', {
    partitions: PARTITIONS,
    retention: { records: 4_096 },
  })
  const readers = ['alice', 'bob'].map((id) => ({ id, seen: 0, next: new Array<number>(PARTITIONS).fill(0) }))
  const faults: string[] = []
  for (const reader of readers) {
    await topic.subscribe(
      (d) => {
        const expected = reader.next[d.partition] as number
        if (d.offset !== expected) faults.push(`${reader.id}: offset ${d.offset} instead of ${expected}`)
        reader.next[d.partition] = d.offset + 1
        reader.seen++
      },
      { id: reader.id },
    )
  }
  let published = 0
  return {
    name: 'broadcast',
    get published() {
      return published
    },
    async step() {
      for (let i = 0; i < STEP; i++) {
        const id = published++
        const order = { id, customer: `customer-${id % 1_000}`, items: [id, id + 1] }
        const options = { key: order.customer, headers: { trace: 'soak' } }
        if (topic.tryPublish(order, options) === undefined) await topic.publish(order, options)
      }
    },
    async settle() {
      await broker.idle()
      for (const { id, seen } of readers) {
        if (seen !== published) faults.push(`${id} saw ${seen} of ${published}`)
      }
      if (faults.length > 0) throw new Error(faults.slice(0, 5).join('; '))
    },
  }
}
