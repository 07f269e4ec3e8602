/**
 * Records of 100 bytes in a burst, until all are accepted, beside a loop that writes the same bytes. The loop knows no
 * records: it has 64 KiB in hand and writes them again and again. A second one takes record by record, as a program
 * must that has records to write. Neither waits for the disk, while a log that goes on must: what is in the journal is also
 * in segments, and each half of the journal is synced before it is used again. The third one writes and syncs as much.
 */
import { strict as assert } from 'node:assert'
import { closeSync, constants, fdatasyncSync, fstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenOptions } from 'odradek'
import {
  allRecords,
  checkRetained,
  closeFiles,
  freshDirectory,
  openFiles,
  publishBurst,
  RECORD_BYTES,
  removeDirectory,
} from '../contenders/files.ts'
import { type Contender, race, type Session } from '../race.ts'
import { atLeast, type Scenario, speed } from '../scenario.ts'

const KiB = 1_024
const MiB = 1_024 * KiB
const PIECE_BYTES = 64 * KiB
/** What of a journal of 32 MiB is used before it is left. */
const JOURNAL_BYTES = 16 * MiB
const RETAINED = { records: Number.MAX_SAFE_INTEGER, bytes: 64 * MiB }

const records = allRecords()

function odradek(name: string, options: OpenOptions): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const files = await openFiles(options, { retention: RETAINED })
      let next = 0
      return {
        tallies: [],
        async run(count) {
          await publishBurst(files.topic, records, next, next + count)
          next += count
          assert.equal(files.topic.describe().partitions[0]?.high, next)
        },
        async close() {
          await checkRetained(files)
          await closeFiles(files)
        },
      }
    },
  }
}

/** Writes to a new file in each run, as a log does that only grows; the file before is gone, and its bytes with it. */
function loop(name: string, write: (file: number, count: number, directory: string) => void): Contender {
  return {
    name,
    open(): Session {
      const directory = freshDirectory()
      const path = join(directory, 'log')
      return {
        tallies: [],
        run(count) {
          rmSync(path, { force: true })
          const file = openSync(path, 'w')
          write(file, count, directory)
          assert.equal(fstatSync(file).size, count * RECORD_BYTES)
          closeSync(file)
        },
        close: () => removeDirectory(directory),
      }
    },
  }
}

const piece = new Uint8Array(PIECE_BYTES)

function writePieces(file: number, count: number): void {
  for (let left = count * RECORD_BYTES; left > 0; left -= PIECE_BYTES) {
    writeSync(file, piece, 0, Math.min(left, PIECE_BYTES))
  }
}

/** Each piece to a file that grows, and over what was there before in another one; both are synced where that ends. */
function writeTwice(file: number, count: number, directory: string): void {
  // Is there from the second run on.
  const used = openSync(join(directory, 'journal'), constants.O_RDWR | constants.O_CREAT)
  let at = 0
  for (let left = count * RECORD_BYTES; left > 0; left -= PIECE_BYTES) {
    const length = Math.min(left, PIECE_BYTES)
    writeSync(used, piece, 0, length, at)
    writeSync(file, piece, 0, length)
    at += length
    if (at < JOURNAL_BYTES) continue
    fdatasyncSync(used)
    fdatasyncSync(file)
    at = 0
  }
  closeSync(used)
}

function writeRecords(file: number, count: number): void {
  let at = 0
  for (let i = 0; i < count; i++) {
    if (at + RECORD_BYTES > PIECE_BYTES) {
      writeSync(file, piece, 0, at)
      at = 0
    }
    piece.set(records[i % records.length] as Uint8Array, at)
    at += RECORD_BYTES
  }
  writeSync(file, piece, 0, at)
}

const TWICE = 'bytes in pieces of 64 KiB, twice, and synced'

export const fileBurst: Scenario = {
  name: 'file-burst',
  title: 'Records of 100 bytes in a burst, until all are accepted, on one partition on disk',
  moved: 'records',
  rows: [
    speed('odradek, os', 'bytes in pieces of 64 KiB', atLeast(0.25)),
    speed('odradek, os', 'records into pieces of 64 KiB'),
    speed('odradek, os', TWICE),
    speed('odradek, fsync', 'bytes in pieces of 64 KiB'),
  ],
  sample: race({
    unit: 1_000,
    expectation: () => 0,
    contenders: [
      odradek('odradek, os', { durability: 'os' }),
      odradek('odradek, fsync', { durability: 'fsync' }),
      loop('bytes in pieces of 64 KiB', writePieces),
      loop('records into pieces of 64 KiB', writeRecords),
      loop(TWICE, writeTwice),
    ],
  }),
}
