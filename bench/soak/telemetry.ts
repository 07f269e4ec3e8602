/** A reader far too slow for its topic, which drops the oldest: what it saw and what it lost are all there was. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type OpenWorkload, STEP } from './workload.ts'

export const telemetry: OpenWorkload = async (broker) => {
  const topic = await broker.createTopic<number>('telemetry', { retention: { records: 1_024 } })
  let last = -1
  let seen = 0
  let disorder = 0
  await topic.subscribe(
    async (d) => {
      if (d.offset <= last || d.value !== d.offset) disorder++
      last = d.offset
      seen++
      await sleep(1)
    },
    { id: 'gauge', overflow: 'drop-oldest' },
  )
  let published = 0
  return {
    name: 'telemetry',
    get published() {
      return published
    },
    async step() {
      for (let i = 0; i < STEP; i++) {
        if (topic.tryPublish(published++) === undefined) throw new Error('a drop-oldest reader held the log')
      }
    },
    async settle() {
      await broker.idle()
      const { dropped } = topic.describe().readers[0]?.counters ?? { dropped: -1 }
      if (disorder > 0) throw new Error(`${disorder} readings out of order`)
      if (dropped === 0) throw new Error('the slow reader was not slow enough to lose anything')
      if (seen + dropped !== published) {
        throw new Error(`${seen} seen and ${dropped} dropped are not ${published} published`)
      }
    },
  }
}
