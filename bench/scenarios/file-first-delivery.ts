/**
 * From the call of `openBroker` to a handler's first line: a durable reader that goes on at the oldest record, by how
 * many segments there are and how the process before ended.
 */
import { strict as assert } from 'node:assert'
import { openBroker } from 'odradek'
import {
  allRecords,
  closeFiles,
  crashImage,
  numberOf,
  openFiles,
  publishBurst,
  quiet,
  removeDirectory,
  UNBOUNDED,
} from '../contenders/files.ts'
import { clockOf, turn } from '../race.ts'
import { absolute, type Plan, type Samples, type Scenario } from '../scenario.ts'

const KiB = 1_024
const SEGMENT_BYTES = 256 * KiB
const RECORD_BYTES = 1_024
const SEGMENTS = [1, 10, 100] as const
const STOPS = ['clean', 'unclean'] as const

const records = allRecords(RECORD_BYTES)
const options = { durability: 'os', segmentBytes: SEGMENT_BYTES, logger: quiet } as const

/** What a process leaves that has written so many segments. */
async function filled(segments: number, stop: (typeof STOPS)[number]): Promise<string> {
  const files = await openFiles(options, { retention: UNBOUNDED })
  const { topic, broker, directory } = files
  // The reader that will go on.
  const reader = await topic.subscribe(() => undefined, { id: 'reader', credit: 'manual', from: 'earliest' })
  await publishBurst(topic, records, 0, Math.ceil(((segments - 0.5) * SEGMENT_BYTES) / (RECORD_BYTES + 20)))
  await reader.close()
  if (stop === 'clean') await broker.close()
  const image = crashImage(directory)
  if (stop === 'clean') removeDirectory(directory)
  else await closeFiles(files)
  return image
}

async function firstDelivery(directory: string, now: () => number): Promise<number> {
  await turn()
  const from = now()
  const broker = await openBroker(`file:${directory}`, options)
  const ms = await new Promise<number>((resolve, reject) => {
    let first = true
    const handler = (d: { readonly offset: number; readonly value: unknown }): void => {
      if (!first) return
      first = false
      assert.equal(d.offset, 0)
      assert.equal(numberOf(d.value), 0)
      resolve(now() - from)
    }
    broker.subscribe('orders', handler, { id: 'reader' }).catch(reject)
  })
  await broker.close()
  return ms
}

function nameOf(segments: number, stop: string): string {
  return `${segments} segment${segments === 1 ? '' : 's'}, ${stop} stop`
}

async function sample(plan: Plan): Promise<Samples> {
  const now = clockOf(plan)
  const samples: { [name: string]: number[] } = {}
  for (const stop of STOPS) {
    for (const segments of SEGMENTS) {
      const image = await filled(segments, stop)
      const figures: number[] = []
      for (let round = -1; round < Math.min(plan.rounds, 3); round++) {
        const directory = crashImage(image)
        const ms = await firstDelivery(directory, now)
        if (round >= 0) figures.push(ms)
        removeDirectory(directory)
      }
      removeDirectory(image)
      samples[nameOf(segments, stop)] = figures
    }
  }
  return samples
}

export const fileFirstDelivery: Scenario = {
  name: 'file-first-delivery',
  title: 'From `openBroker` to the first delivery, segments of 256 KiB (time: less is better)',
  moved: '',
  rows: STOPS.flatMap((stop) => SEGMENTS.map((segments) => absolute(nameOf(segments, stop), 'ms'))),
  sample,
}
