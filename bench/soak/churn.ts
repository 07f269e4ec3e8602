/** Readers, groups, streams and topics that come and go; each sees what was published while it was there. */
import { strict as assert } from 'node:assert'
import type { Broker } from 'odradek'
import type { OpenWorkload } from './workload.ts'

const RECORDS = 8

export const churn: OpenWorkload = async (broker) => {
  const topic = await broker.createTopic<number>('news', { retention: { records: 1_024 } })
  const shops = await shortLivedTopics(broker)
  let published = 0
  let rounds = 0

  /** Publishes a few; the values are the offsets. */
  async function publishSome(): Promise<number[]> {
    const values = Array.from({ length: RECORDS }, () => published++)
    await topic.publishAll(values.map((value) => ({ value })))
    return values
  }

  async function subscriptions(): Promise<void> {
    const seen = { anonymous: [] as number[], named: [] as number[], group: [] as number[] }
    const id = `visitor-${rounds}`
    const group = `tour-${rounds}`
    const readers = [
      await topic.subscribe((d) => seen.anonymous.push(d.value)),
      await topic.subscribe((d) => seen.named.push(d.value), { id }),
      await topic.subscribe((d) => seen.group.push(d.value), { group }),
    ]
    const values = await publishSome()
    await Promise.all(readers.map((reader) => reader.waitFor({ partition: 0, offset: published - 1 })))
    await broker.unsubscribe('news', id)
    for (const reader of readers) await reader.close()
    await broker.deleteGroup(group)
    assert.deepEqual(seen, { anonymous: values, named: values, group: values })
  }

  async function stream(): Promise<void> {
    const [first] = await publishSome()
    let left = RECORDS
    for await (const d of topic.stream({ from: first as number })) {
      assert.equal(d.offset, published - left)
      if (--left === 0) break
    }
  }

  return {
    name: 'churn',
    get published() {
      return published + shops.published
    },
    async step() {
      rounds++
      await subscriptions()
      await stream()
      await shops.step()
    },
    settle: () => shops.settle(),
  }
}

/** A topic for eight records, seen by an auditor who reads every shop there is. */
async function shortLivedTopics(broker: Broker) {
  let audited = 0
  let published = 0
  let arrived: () => void = () => {}
  await broker.subscribe(
    'shop.*',
    () => {
      if (++audited === published) arrived()
    },
    { id: 'auditor' },
  )
  return {
    get published() {
      return published
    },
    async step() {
      const topic = await broker.createTopic<number>(`shop.${published}`)
      published += RECORDS
      const all = new Promise<void>((resolve) => {
        arrived = resolve
      })
      for (let i = 0; i < RECORDS; i++) await topic.publish(i)
      await all
      await broker.deleteTopic(topic.name)
    },
    async settle() {
      await broker.idle()
      assert.equal(audited, published)
    },
  }
}
