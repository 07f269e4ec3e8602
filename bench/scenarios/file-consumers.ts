/**
 * What a durable reader takes from a log on disk, records of 100 bytes. Behind: 64 MiB of log pass through a cache of
 * 4 MiB, so that nothing is left of the pass before, but in the page cache of the system. At the tail: what is published
 * is handed out as soon as it is committed. Beside it the memory engine, where nothing is encoded.
 */
import { createBroker } from 'odradek/memory'
import {
  allRecords,
  closeFiles,
  type Files,
  KINDS,
  numberOf,
  openFiles,
  publishBurst,
  UNBOUNDED,
} from '../contenders/files.ts'
import { type Contender, race, type Session } from '../race.ts'
import { type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

const MiB = 1_024 * 1_024
/** Of the log: what a pass hands out. */
const RECORDS = 600 * KINDS
const CACHE_BYTES = 4 * MiB
const OPTIONS = { durability: 'os', cacheBytes: CACHE_BYTES } as const

const records = allRecords()

type Settles = 'synchronous' | 'async'
type OnTopic = Pick<Files['topic'], 'subscribe' | 'publish' | 'tryPublish'>

/** One reader, and what its handler counts. */
async function readBy(topic: OnTopic, settles: Settles, tallies: readonly Tally[]): Promise<void> {
  const count = (value: unknown): void => {
    for (const tally of tallies) tally.add(numberOf(value))
  }
  const options = { id: 'reader' }
  if (settles === 'synchronous') await topic.subscribe((d) => count(d.value), options)
  else await topic.subscribe(async (d) => count(d.value), options)
}

/** Goes through the log from its start, again and again. */
function behind(name: string, settles: Settles, memory: boolean): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const files = memory ? await inMemory() : await openFiles(OPTIONS, { retention: UNBOUNDED })
      await publishBurst(files.topic, records, 0, RECORDS)
      const tally = new Tally()
      const pass = new Tally()
      pass.start(Number.POSITIVE_INFINITY)
      await readBy(files.topic, settles, [tally, pass])
      return {
        tallies: [tally],
        async run(count) {
          for (let done = 0; done < count; done += RECORDS) {
            pass.start(RECORDS)
            await files.broker.resetOffset('orders', 'reader', 'earliest')
            await pass.done
          }
        },
        close: () => close(files),
      }
    },
  }
}

/** Publishes, and reads what was published. */
function atTail(name: string, settles: Settles, memory: boolean): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const files = memory ? await inMemory() : await openFiles(OPTIONS, { retention: { bytes: 64 * MiB } })
      const tally = new Tally()
      await readBy(files.topic, settles, [tally])
      return {
        tallies: [tally],
        run: (count) => publishBurst(files.topic, records, 0, count),
        close: () => close(files),
      }
    },
  }
}

async function inMemory(): Promise<Files> {
  const broker = createBroker()
  const topic = await broker.createTopic<Uint8Array>('orders', { retention: UNBOUNDED })
  return { broker, topic, directory: '' }
}

async function close(files: Files): Promise<void> {
  if (files.directory === '') await files.broker.close()
  else await closeFiles(files)
}

export const fileBehind: Scenario = {
  name: 'file-behind',
  title: 'A durable reader goes through 64 MiB of log, records of 100 bytes',
  moved: 'records',
  rows: [
    speed('from disk', 'memory engine'),
    speed('from disk, async handler', 'memory engine, async handler'),
  ],
  sample: race({
    unit: RECORDS,
    expectation: ordered((i) => i % KINDS),
    contenders: [
      behind('from disk', 'synchronous', false),
      behind('from disk, async handler', 'async', false),
      behind('memory engine', 'synchronous', true),
      behind('memory engine, async handler', 'async', true),
    ],
  }),
}

export const fileTail: Scenario = {
  name: 'file-tail',
  title: 'One producer under `os`, one durable reader at the tail, records of 100 bytes',
  moved: 'records',
  rows: [speed('on disk', 'memory engine'), speed('on disk, async handler', 'memory engine, async handler')],
  sample: race({
    unit: KINDS,
    expectation: ordered((i) => i % KINDS),
    contenders: [
      atTail('on disk', 'synchronous', false),
      atTail('on disk, async handler', 'async', false),
      atTail('memory engine', 'synchronous', true),
      atTail('memory engine, async handler', 'async', true),
    ],
  }),
}
