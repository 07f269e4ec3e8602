/**
 * Jobs to a shared group of three, one of which acks by hand. One job in 997 fails once, one in 499,979
 * always: it becomes a dead letter, is sent back, and succeeds. Every job must be done exactly once in the end.
 * (The broker remembers 65,536 dead letters, to append each once; far more rarely than that, this is no growth.)
 */
import type { Delivery } from 'odradek'
import { Ledger, type OpenWorkload, STEP } from './workload.ts'

/** Steps between two redrives. */
const REDRIVE_EVERY = 100

const fails = (d: Delivery<number>): boolean =>
  !d.headers.has('__redrive.reader') && (d.value % 499_979 === 0 || (d.value % 997 === 0 && d.attempt === 1))

export const group: OpenWorkload = async (broker) => {
  const topic = await broker.createTopic<number>('jobs', { retention: { records: 4_096 } })
  await broker.createTopic('dlq.jobs', { retention: { records: 64 } })
  const published = new Ledger()
  const done = new Ledger()
  const settings = { group: 'workers', retry: { attempts: 3, delayMs: 2, maxDelayMs: 10 } } as const
  const work = (d: Delivery<number>): void => {
    if (fails(d)) throw new Error('a bad day')
    done.add(d.value)
  }
  await topic.subscribe(work, { id: 'synchronous', ...settings })
  await topic.subscribe(async (d) => work(d), { id: 'async', concurrency: 16, ...settings })
  const byHand = (d: Delivery<number>): void => {
    if (fails(d)) d.nack({ reason: 'a bad day' })
    else if (d.ack()) done.add(d.value)
  }
  await topic.subscribe(byHand, { id: 'by-hand', ack: 'manual', ...settings })

  let steps = 0
  return {
    name: 'group',
    get published() {
      return published.count
    },
    async step() {
      for (let i = 0; i < STEP; i++) {
        const id = published.count
        published.add(id)
        if (topic.tryPublish(id) === undefined) await topic.publish(id)
      }
      if (++steps % REDRIVE_EVERY === 0) await broker.redrive('dlq.jobs')
    },
    async settle() {
      await broker.idle()
      await broker.redrive('dlq.jobs')
      await broker.idle()
      published.balance('jobs done', done)
    },
  }
}
