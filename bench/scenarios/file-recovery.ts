/**
 * What an open costs by the bytes that it has to go through, all of them in the page cache.
 *
 *   checked    a process was killed: all of its journal is read, checked, and looked through, before anything is done.
 *              The directory is refused then, since one of its files is missing: nothing else is in the time
 *   opened     the same journal, until `openBroker` resolves: checked, written to segments, and synced, less the time
 *              that opening an empty directory takes
 *   segments   indexes are gone: each segment is read and checked to make its index again, when somebody reads it
 *
 * Bytes are those of batches. Beside it the same files are read in pieces of 64 KiB, and as many bytes are written in
 * pieces of 1 MiB, and synced: no open can be faster than that. A journal of small batches comes from many partitions,
 * since records of one turn and partition are one batch.
 */
import { strict as assert } from 'node:assert'
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Broker, OdradekError, openBroker } from 'odradek'
import {
  allRecords,
  bytesOf,
  crashImage,
  type Files,
  freshDirectory,
  KINDS,
  numberOf,
  openFiles,
  publishBurst,
  quiet,
  removeDirectory,
  UNBOUNDED,
} from '../contenders/files.ts'
import { clockOf, turn } from '../race.ts'
import { absolute, atLeast, type Plan, type Samples, type Scenario } from '../scenario.ts'

const KiB = 1_024
const MiB = 1_024 * KiB
const PIECE_BYTES = 64 * KiB
const PARTITIONS = 8
/** A batch of one record. */
const SMALL_BYTES = 170

/** How large the batches are that a directory is filled with. */
type Shape = 'large' | 'small'

const records = allRecords()

/** Publishes about `bytes` of them, and answers how many records each partition has. */
async function fill({ topic }: Files, shape: Shape, bytes: number): Promise<number> {
  if (shape === 'large') {
    const count = Math.ceil(bytes / 110)
    await publishBurst(topic, records, 0, count)
    return count
  }
  const rounds = Math.ceil(bytes / SMALL_BYTES / PARTITIONS)
  let last: Promise<unknown> = Promise.resolve()
  for (let i = 0; i < rounds; i++) {
    for (let partition = 0; partition < PARTITIONS; partition++) {
      last = topic.publish(records[i % KINDS] as Uint8Array, { partition })
    }
    await last
  }
  return rounds
}

interface Timed {
  readonly ms: number
  readonly broker: Broker
}

async function timedOpen(directory: string, now: () => number): Promise<Timed> {
  await turn()
  const from = now()
  const broker = await openBroker(`file:${directory}`, { durability: 'os', logger: quiet })
  return { ms: now() - from, broker }
}

/** Reads all files below `directory` whose name ends like that, in pieces. */
function readAll(directory: string, suffix: string): number {
  const piece = new Uint8Array(PIECE_BYTES)
  let bytes = 0
  for (const name of readdirSync(directory, { recursive: true }) as string[]) {
    if (!name.endsWith(suffix)) continue
    const file = openSync(join(directory, name), 'r')
    if (fstatSync(file).isFile()) {
      for (let read = readSync(file, piece); read > 0; read = readSync(file, piece)) bytes += read
    }
    closeSync(file)
  }
  return bytes
}

class Recovery {
  readonly #figures: { [name: string]: number[] } = {}
  readonly #now: () => number
  readonly #rounds: number
  #emptyMs = 0

  constructor(plan: Plan) {
    this.#rounds = Math.min(plan.rounds, 3)
    this.#now = clockOf(plan)
  }

  get samples(): Samples {
    return this.#figures
  }

  /** What is left for the bytes is what opening an empty directory does not cost. */
  async empty(): Promise<void> {
    for (let round = -1; round < this.#rounds; round++) {
      const directory = freshDirectory()
      const { ms, broker } = await timedOpen(directory, this.#now)
      await broker.close()
      removeDirectory(directory)
      if (round < 0) continue
      this.#add('an empty directory', ms)
      this.#emptyMs = Math.min(this.#emptyMs || ms, ms)
    }
  }

  async journal(shape: Shape, bytes: number): Promise<void> {
    const partitions = shape === 'small' ? PARTITIONS : 1
    // A file is left when it is half full.
    const options = { durability: 'os', journalBytes: 3 * bytes } as const
    const files = await openFiles(options, { partitions, retention: UNBOUNDED })
    // So that there is a checkpoint, which says that there is a journal.
    await files.broker.close()
    const broker = await openBroker(`file:${files.directory}`, { ...options, logger: quiet })
    const count = await fill({ ...files, broker, topic: broker.topic('orders') }, shape, bytes)
    const image = crashImage(files.directory)
    await broker.close()
    const batchBytes = bytesOf(files.directory, '.log')
    removeDirectory(files.directory)
    for (let round = -1; round < this.#rounds; round++)
      await this.#opened(shape, image, count, batchBytes, round)
    rmSync(join(image, 'journal/b'))
    for (let round = -1; round < this.#rounds; round++) await this.#checked(shape, image, batchBytes, round)
    removeDirectory(image)
  }

  async #checked(shape: Shape, image: string, bytes: number, round: number): Promise<void> {
    await turn()
    const from = this.#now()
    const refused = await openBroker(`file:${image}`, { durability: 'os', logger: quiet }).catch(
      (error) => error,
    )
    const ms = this.#now() - from
    assert(refused instanceof OdradekError && refused.code === 'CORRUPT_LOG', String(refused))
    assert(refused.message.startsWith('journal/b'), refused.message)
    if (round >= 0) this.#add(nameOf('journal, checked', shape), rate(bytes, ms))
  }

  async #opened(shape: Shape, image: string, count: number, bytes: number, round: number): Promise<void> {
    const directory = crashImage(image)
    readAll(directory, '')
    const { ms, broker } = await timedOpen(directory, this.#now)
    await this.#check(broker, count)
    await broker.close()
    if (round >= 0) this.#add(nameOf('journal, opened', shape), rate(bytes, ms - this.#emptyMs))
    this.#read(directory, 'journal/a', round)
    this.#write(directory, bytes, round)
    removeDirectory(directory)
  }

  /** The first and the last record of each partition are what they were. */
  async #check(broker: Broker, count: number): Promise<void> {
    for (const { partition, start, high } of broker.describe('orders').partitions) {
      assert.equal(start, 0)
      assert.equal(high, count)
      for (const at of [0, count - 1]) {
        const [record] = await broker.read('orders', partition, at, at + 1)
        assert.equal(numberOf(record?.value), at % KINDS)
      }
    }
  }

  async segments(shape: Shape, bytes: number): Promise<void> {
    const partitions = shape === 'small' ? PARTITIONS : 1
    const options = { durability: 'os', segmentBytes: bytes / 4 } as const
    const files = await openFiles(options, { partitions, retention: UNBOUNDED })
    await fill(files, shape, bytes)
    await files.broker.close()
    for (let round = -1; round < this.#rounds; round++) {
      for (const name of readdirSync(files.directory, { recursive: true }) as string[]) {
        if (name.endsWith('.index')) rmSync(join(files.directory, name))
      }
      readAll(files.directory, '.log')
      const broker = await openBroker(`file:${files.directory}`, { ...options, logger: quiet })
      const places = broker.describe('orders').partitions.flatMap(({ partition, high }) => {
        return [0, 0.3, 0.55, 0.8].map((share) => ({ partition, at: Math.floor(high * share) }))
      })
      const from = this.#now()
      for (const { partition, at } of places) {
        const [record] = await broker.read('orders', partition, at, at + 1)
        assert.equal(numberOf(record?.value), at % KINDS)
      }
      const ms = this.#now() - from
      await broker.close()
      if (round >= 0) this.#add(nameOf('segments', shape), rate(bytesOf(files.directory, '.log'), ms))
      this.#read(files.directory, '.log', round)
    }
    removeDirectory(files.directory)
  }

  #read(directory: string, suffix: string, round: number): void {
    const from = this.#now()
    const bytes = readAll(directory, suffix)
    if (round >= 0) this.#add(LOOP, rate(bytes, this.#now() - from))
  }

  #write(directory: string, bytes: number, round: number): void {
    const piece = new Uint8Array(MiB).fill(97)
    const file = openSync(join(directory, 'written'), 'w')
    const from = this.#now()
    let left = bytes
    while (left > 0) left -= writeSync(file, piece, 0, Math.min(left, MiB))
    fdatasyncSync(file)
    const ms = this.#now() - from
    closeSync(file)
    if (round >= 0) this.#add(WRITING, rate(bytes, ms))
  }

  #add(name: string, figure: number): void {
    const figures = this.#figures[name] ?? []
    figures.push(figure)
    this.#figures[name] = figures
  }
}

const LOOP = 'the same files, read in pieces of 64 KiB'
const WRITING = 'as many bytes, written and synced'

type What = 'journal, checked' | 'journal, opened' | 'segments'

function nameOf(what: What, shape: Shape): string {
  return `${what}, batches of ${shape === 'large' ? '64 KiB' : '170 bytes'}`
}

/** Bytes per millisecond are megabytes per second. */
function rate(bytes: number, ms: number): number {
  return bytes / ms / 1e6
}

async function sample(plan: Plan): Promise<Samples> {
  const [large, small] = plan.roundMs < 100 ? [2 * MiB, MiB / 2] : [128 * MiB, 32 * MiB]
  const recovery = new Recovery(plan)
  await recovery.empty()
  await recovery.journal('large', large)
  await recovery.journal('small', small)
  await recovery.segments('large', large)
  await recovery.segments('small', small)
  return recovery.samples
}

export const fileRecovery: Scenario = {
  name: 'file-recovery',
  title: 'Recovery with a warm page cache: after a kill (journal), and without indexes (segments)',
  moved: '',
  rows: [
    absolute(nameOf('journal, checked', 'large'), 'GB/s', atLeast(2)),
    absolute(nameOf('journal, checked', 'small'), 'GB/s', atLeast(0.5)),
    absolute(nameOf('journal, opened', 'large'), 'GB/s'),
    absolute(nameOf('journal, opened', 'small'), 'GB/s'),
    absolute(nameOf('segments', 'large'), 'GB/s', atLeast(2)),
    absolute(nameOf('segments', 'small'), 'GB/s', atLeast(0.5)),
    absolute(LOOP, 'GB/s'),
    absolute(WRITING, 'GB/s'),
    absolute('an empty directory', 'ms'),
  ],
  sample,
}
