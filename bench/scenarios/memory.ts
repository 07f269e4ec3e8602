/** What a retained record costs beyond its value: the heap before and after filling a log, both collected. */
import { strict as assert } from 'node:assert'
import { createBroker } from 'odradek/memory'
import { turn } from '../race.ts'
import { absolute, atMost, type Plan, type Samples, type Scenario } from '../scenario.ts'
import { Tally } from '../tally.ts'

/** Four times the default retention, so that what a broker costs once does not show. */
const RECORDS = 262_144

interface Filled {
  readonly used: number
  close(): Promise<unknown>
}

/** Collects until nothing more goes: some of the garbage is only let go by what a collection starts. */
async function heapBytes(): Promise<number> {
  for (let last = Number.POSITIVE_INFINITY; ; ) {
    await turn()
    globalThis.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    if (heapUsed + external >= last) return last
    last = heapUsed + external
  }
}

async function fill(values: readonly object[], keys: readonly string[] | null): Promise<Filled> {
  const before = await heapBytes()
  const broker = createBroker()
  const topic = await broker.createTopic<object>('orders', {
    retention: { records: RECORDS, bytes: Number.MAX_SAFE_INTEGER },
  })
  const tally = new Tally()
  tally.start(RECORDS)
  await topic.subscribe((d) => tally.add(d.offset), { id: 'reader' })
  for (let i = 0; i < values.length; i++) {
    const key = keys?.[i & 1_023]
    const options = key === undefined ? undefined : { key }
    if (topic.tryPublish(values[i] as object, options) === undefined) throw new Error('the log has no room')
  }
  await tally.done
  await broker.idle()
  const used = (await heapBytes()) - before
  assert.equal(topic.describe().partitions[0]?.records, RECORDS)
  return { used, close: () => broker.close() }
}

/** The bare minimum: the values in an array. */
async function fillArray(values: readonly object[]): Promise<Filled> {
  const before = await heapBytes()
  const kept = values.map((value) => value)
  const used = (await heapBytes()) - before
  return { used, close: async () => assert.equal(kept.length, RECORDS) }
}

/** A function of its own, so that nothing here holds what the one before had filled. */
async function bytesPerRecord(open: () => Promise<Filled>): Promise<number> {
  const { used, close } = await open()
  await close()
  return used / RECORDS
}

async function sample(plan: Plan): Promise<Samples> {
  const values = Array.from({ length: RECORDS }, (_, id) => ({ id }))
  const keys = Array.from({ length: 1_024 }, (_, i) => `customer-${i}`)
  const contenders: { [name: string]: () => Promise<Filled> } = {
    odradek: () => fill(values, null),
    'odradek, with keys': () => fill(values, keys),
    'array of values': () => fillArray(values),
  }
  const samples: { [name: string]: number[] } = {}
  for (let round = 0; round < Math.min(plan.rounds, 2); round++) {
    for (const [name, open] of Object.entries(contenders)) {
      const figures = samples[name] ?? []
      figures.push(await bytesPerRecord(open))
      samples[name] = figures
    }
  }
  return samples
}

export const memory: Scenario = {
  name: 'memory',
  title: 'Heap per retained record beyond its value (262,144 records)',
  moved: '',
  rows: [
    absolute('odradek', 'bytes', atMost(32)),
    absolute('odradek, with keys', 'bytes', atMost(32)),
    absolute('array of values', 'bytes'),
  ],
  sample,
}
