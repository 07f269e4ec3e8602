/** Transactions of producers. */
import { expect } from 'vitest'
import type { Feature } from './feature.ts'
import { all, ended, reads, TOPIC, text, valuesOf } from './values.ts'

export const TRANSACTIONS: readonly Feature[] = [
  {
    name: 'transactions, read committed',
    group: 'transactions',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      const args = { topic: TOPIC, count: 10, transactionalId: 'till' }
      await trial.did('transact', { ...args, prefix: 'a', abort: false })
      await trial.did('transact', { ...args, prefix: 'b', abort: true })
      await trial.did('transact', { ...args, prefix: 'c', abort: false })
      // Three markers, and some of what was aborted: it was in the log.
      expect(ended(trial.broker)).toBeGreaterThan(20 + 3)
      const wanted = ['a', 'c'].flatMap((prefix) => Array.from({ length: 10 }, (_, i) => `${prefix}${i}`))
      expect(valuesOf([await reads(trial, { offset: 0 }, 20)])).toEqual(wanted)
      expect((await trial.broker.read(TOPIC)).map(({ value }) => text(value))).toEqual(wanted)
    },
  },
  {
    name: 'offsets in a transaction',
    group: 'transactions',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await trial.broker.createTopic('input')
      for (let i = 0; i < 20; i++) await trial.broker.publish('input', `v${i}`, { key: 'k' })
      const args = {
        topic: TOPIC,
        count: 5,
        prefix: 'a',
        transactionalId: 'till',
        group: 'tellers',
        input: 'input',
      }
      await trial.did('transact', { ...args, offset: 12, abort: false })
      await trial.did('transact', { ...args, offset: 17, abort: true })
      const next = await trial.did('consume', { topic: 'input', group: 'tellers', count: 8 })
      expect(valuesOf([next])).toEqual(all(12, 20))
    },
  },
]
