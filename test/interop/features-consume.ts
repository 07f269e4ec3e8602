/** Reading a partition, without a group or by seeking. */
import { expect } from 'vitest'
import type { Feature } from './feature.ts'
import { COMPRESSIONS } from './features-produce.ts'
import { all, publish, reads, TOPIC, valuesOf } from './values.ts'

const COUNT = 100

export const CONSUMING: readonly Feature[] = [
  ...COMPRESSIONS.map(
    (compression): Feature => ({
      name: `consume, ${compression === 'none' ? 'uncompressed' : compression}`,
      group: 'consume',
      async run(trial) {
        await trial.broker.createTopic(TOPIC)
        await trial.did('produce', { topic: TOPIC, count: COUNT, prefix: 'v', compression })
        const reader = await reads(trial, { offset: 0 }, COUNT)
        expect(valuesOf([reader])).toEqual(all(0, COUNT))
        expect(reader.records.map(({ offset }) => offset)).toEqual([...Array(COUNT).keys()])
      },
    }),
  ),
  {
    name: 'consume what was published in process',
    group: 'consume',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, COUNT)
      const reader = await reads(trial, { offset: 0 }, COUNT)
      expect(valuesOf([reader])).toEqual(all(0, COUNT))
      expect(reader.records[13]?.key).toBe('k3')
    },
  },
  {
    name: 'seek to an offset',
    group: 'consume',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, COUNT)
      expect(valuesOf([await reads(trial, { offset: 40 }, 20)])).toEqual(all(40, 60))
    },
  },
  {
    name: 'seek to a time',
    group: 'consume',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 50)
      const before = Date.now()
      await trial.drivers.until('a later millisecond', () => Date.now() > before + 1)
      const timestamp = Date.now()
      await publish(trial.broker, 50, COUNT)
      expect(valuesOf([await reads(trial, { timestamp }, 10)])).toEqual(all(50, 60))
    },
  },
]
