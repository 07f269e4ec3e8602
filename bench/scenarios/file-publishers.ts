/**
 * Publishers that each wait for one record to be accepted before they publish the next, beside a loop that writes and
 * syncs one record after the other, once as anybody writes it, and once into a file that has its size already.
 * Syncs are counted where they leave for the system, whatever file they are of.
 */
import { strict as assert } from 'node:assert'
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  allRecords,
  checkRetained,
  closeFiles,
  freshDirectory,
  KINDS,
  openFiles,
  RECORD_BYTES,
  removeDirectory,
  UNBOUNDED,
} from '../contenders/files.ts'
import { type Contender, race, type Session } from '../race.ts'
import { absolute, atLeast, type Plan, type Samples, type Scenario, speed } from '../scenario.ts'

const MiB = 1_024 * 1_024

const records = allRecords()

let syncs = 0

/** All handles of the process share one prototype, so this sees the syncs of everybody. */
async function countSyncs(): Promise<void> {
  const directory = freshDirectory()
  const handle = await open(join(directory, 'x'), 'w')
  const prototype = Object.getPrototypeOf(handle) as Pick<FileHandle, 'datasync'>
  const datasync = prototype.datasync
  prototype.datasync = function (this: FileHandle) {
    syncs++
    return datasync.call(this)
  }
  await handle.close()
  removeDirectory(directory)
}

/** What one contender did, in its last run: the warm ones that count come last. */
const publishesPerSync = new Map<string, number[]>()

function odradek(name: string, publishers: number, partitions: number): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const files = await openFiles({ durability: 'fsync' }, { partitions, retention: UNBOUNDED })
      const { topic } = files
      const figures: number[] = []
      publishesPerSync.set(name, figures)
      let published = 0
      return {
        tallies: [],
        async run(count) {
          const before = syncs
          let next = published
          const until = published + count
          const publisher = async (first: number): Promise<void> => {
            for (let i = first; i < until; i = next++) {
              const value = records[i % KINDS] as Uint8Array
              if (partitions === 1) await topic.publish(value)
              else await topic.publish(value, { partition: i % partitions })
            }
          }
          await Promise.all(Array.from({ length: publishers }, () => publisher(next++)))
          published = until
          figures.push(count / (syncs - before))
          const ends = topic.describe().partitions.reduce((sum, { high }) => sum + high, 0)
          assert.equal(ends, published)
        },
        async close() {
          if (partitions === 1) await checkRetained(files)
          await closeFiles(files)
        },
      }
    },
  }
}

/** `preallocated`: overwrites zeros, so that a sync has no size to write. */
function loop(name: string, preallocated: boolean): Contender {
  return {
    name,
    open(): Session {
      const directory = freshDirectory()
      const file = openSync(join(directory, 'log'), 'w')
      const sizeBytes = preallocated ? 16 * MiB : Number.POSITIVE_INFINITY
      if (preallocated) {
        writeSync(file, new Uint8Array(sizeBytes))
        fdatasyncSync(file)
      }
      let at = 0
      return {
        tallies: [],
        run(count) {
          for (let i = 0; i < count; i++) {
            if (at + RECORD_BYTES > sizeBytes) at = 0
            writeSync(file, records[i % KINDS] as Uint8Array, 0, RECORD_BYTES, at)
            fdatasyncSync(file)
            at += RECORD_BYTES
          }
        },
        close() {
          closeSync(file)
          removeDirectory(directory)
        },
      }
    },
  }
}

const APPENDING = 'write + fdatasync'
const OVERWRITING = 'write + fdatasync, preallocated'
const publishersOf = [1, 10, 100, 1_000] as const
const nameOf = (publishers: number): string =>
  `odradek, ${publishers} publisher${publishers === 1 ? '' : 's'}`
const OVER_100 = 'odradek, 100 publishers over 100 partitions'
const groupsOf = (name: string): string => `${name}: publishes per sync`

const contenders = [...publishersOf.map(nameOf), OVER_100]

const runs = race({
  expectation: () => 0,
  contenders: [
    ...publishersOf.map((publishers) => odradek(nameOf(publishers), publishers, 1)),
    odradek(OVER_100, 100, 100),
    loop(APPENDING, false),
    loop(OVERWRITING, true),
  ],
})

async function sample(plan: Plan): Promise<Samples> {
  await countSyncs()
  const samples: { [contender: string]: readonly number[] } = { ...(await runs(plan)) }
  for (const [name, figures] of publishesPerSync) samples[groupsOf(name)] = figures.slice(-plan.rounds)
  return samples
}

export const filePublishers: Scenario = {
  name: 'file-publishers',
  title: 'Publishers that each await `publish` under `fsync`, records of 100 bytes',
  moved: 'records',
  rows: [
    ...contenders.map((name) => speed(name, APPENDING, name.includes('100 publishers') ? atLeast(40) : null)),
    ...contenders.map((name) => speed(name, OVERWRITING)),
    ...contenders.map((name) => absolute(groupsOf(name), 'count')),
  ],
  sample,
}
