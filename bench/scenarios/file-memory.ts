/**
 * Memory of a process that opens a large log, and of 100 readers that go through it at different places, each at its own
 * pace. The log is written by another process. What the system keeps of files is not the process's.
 *
 *   held       objects and buffers that are left after a collection: `cacheBytes` for what is read, the journal's share for
 *              what is written (none here), and for each reader the rows it has in hand, a chunk of 256 KiB at most,
 *              which the cache may have given up
 *   resident   the same, and what was let go of and lies about: the collector does not look for buffers before 64 MiB of
 *              them have gone, and goes on marking while more go; and the C allocator keeps what it was given back
 *              between what is still in use. Twice what is held, and V8's young generation, is what it comes to
 *
 * 1 GiB of log; 10 GiB with `--large`.
 */
import { strict as assert } from 'node:assert'
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Broker, openBroker } from 'odradek'
import { freshDirectory, KINDS, numberOf, quiet, removeDirectory } from '../contenders/files.ts'
import { turn } from '../race.ts'
import { absolute, atMost, type Plan, type Samples, type Scenario } from '../scenario.ts'

const MiB = 1_024 * 1_024
const RECORD_BYTES = 1_000
const READERS = 100
const CACHE_MIB = 64
/** Of each reader, while memory is watched. */
const DELIVERIES = 5_000
const HELD_MIB = CACHE_MIB + READERS / 4
/** Three semi-spaces of 16 MiB. */
const YOUNG_MIB = 48

function filledByAnother(directory: string, bytes: number): Promise<void> {
  const script = fileURLToPath(new URL('../contenders/fill.js', import.meta.url))
  return new Promise((resolve, reject) => {
    fork(script, [directory, String(bytes), String(RECORD_BYTES)]).on('exit', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`filling ended with exit code ${code}`))
    })
  })
}

function open(directory: string): Promise<Broker> {
  return openBroker(`file:${directory}`, { durability: 'os', cacheBytes: CACHE_MIB * MiB, logger: quiet })
}

interface Memory {
  readonly heldMiB: number
  readonly residentMiB: number
}

/** A whole collection, and then what is left. */
async function memoryAtRest(): Promise<Memory> {
  for (let i = 0; i < 3; i++) {
    await turn()
    globalThis.gc?.()
  }
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage()
  return { heldMiB: (heapUsed + arrayBuffers) / MiB, residentMiB: rss / MiB }
}

/** Every reader goes on from its own place; resolves when each has seen so many. Answers the most there was of memory. */
async function readAll(broker: Broker, end: number, deliveries: number): Promise<number> {
  let most = 0
  let left = READERS
  await new Promise<void>((resolve, reject) => {
    const subscribe = async (reader: number): Promise<void> => {
      const from = Math.floor((end / READERS) * reader)
      let next = from
      const handler = async (d: { readonly offset: number; readonly value: unknown }): Promise<void> => {
        assert.equal(d.offset, next++)
        assert.equal(numberOf(d.value), d.offset % KINDS)
        if (d.offset % 64 === 0) await turn()
        if (d.offset % 1_024 === 0) most = Math.max(most, process.memoryUsage.rss() / MiB)
        if (next === Math.min(from + deliveries, end) && --left === 0) resolve()
      }
      await broker.subscribe('orders', handler, { id: `reader-${reader}`, from })
    }
    for (let reader = 0; reader < READERS; reader++) subscribe(reader).catch(reject)
  })
  return most
}

async function sample(plan: Plan): Promise<Samples> {
  const short = plan.roundMs < 100
  const bytes = short ? 16 * MiB : plan.large ? 10_240 * MiB : 1_024 * MiB
  const directory = freshDirectory()
  await filledByAnother(directory, bytes)
  const empty = await open(freshDirectory())
  const before = await memoryAtRest()
  const broker = await open(directory)
  const [partition] = broker.describe('orders').partitions
  const end = partition?.high ?? 0
  assert.equal(end, Math.ceil(bytes / RECORD_BYTES))
  const opened = await memoryAtRest()
  const most = await readAll(broker, end, short ? 100 : DELIVERIES)
  const after = await memoryAtRest()
  await broker.close()
  await empty.close()
  removeDirectory(directory)
  return {
    [OPENED]: [opened.residentMiB - before.residentMiB],
    [HELD]: [after.heldMiB - before.heldMiB],
    [MOST]: [most - before.residentMiB],
    [AFTER]: [after.residentMiB - before.residentMiB],
  }
}

const OPENED = 'opened: resident'
const HELD = `${READERS} readers: held after a collection`
const MOST = `${READERS} readers: resident, the most there was`
const AFTER = `${READERS} readers: resident after a collection`

export const fileMemory: Scenario = {
  name: 'file-memory',
  title: `Memory with 1 GiB of log (10 with \`--large\`) beyond an empty broker's, cacheBytes ${CACHE_MIB} MiB`,
  moved: '',
  processes: 1,
  rows: [
    absolute(OPENED, 'MiB', atMost(8)),
    absolute(HELD, 'MiB', atMost(HELD_MIB)),
    absolute(MOST, 'MiB', atMost(2 * HELD_MIB + YOUNG_MIB)),
    absolute(AFTER, 'MiB'),
  ],
  sample,
}
