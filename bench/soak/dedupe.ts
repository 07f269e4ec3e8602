/** Every record is published twice under one id: the log must hold each once. */
import { strict as assert } from 'node:assert'
import type { OpenWorkload } from './workload.ts'

const RECORDS = 64

export const dedupe: OpenWorkload = async (broker) => {
  const topic = await broker.createTopic<number>('payments', {
    retention: { records: 1_024 },
    dedupe: { windowMs: 1_000, records: 512 },
  })
  let seen = 0
  await topic.subscribe(
    (d) => {
      assert.equal(d.value, seen++)
    },
    { id: 'ledger', retry: { attempts: 1 }, deadLetter: false },
  )
  let published = 0
  return {
    name: 'dedupe',
    get published() {
      return published
    },
    async step() {
      for (let i = 0; i < RECORDS; i++) {
        const value = published++
        const options = { id: `payment-${value}` }
        const first = await topic.publish(value, options)
        const second = await topic.publish(value, options)
        assert.deepEqual(second, { ...first, duplicate: true })
      }
    },
    async settle() {
      await broker.idle()
      assert.equal(seen, published)
    },
  }
}
