import { describe, expect, it } from 'vitest'
import type { Checkpoint, StoredLog } from '../../../src/log/file/checkpoint.ts'
import { CHECKPOINT_FILE, readCheckpoint, writeCheckpoint } from '../../../src/log/file/checkpoint.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { PartitionState } from '../../../src/log/state.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { joined, range } from './journal-kit.ts'

const state = new PartitionState()
state.epochStarted(0, 0)
state.appended({ id: 5, epoch: 1, sequence: 0, transactional: true }, 0, 9, 1000)
state.marker(5, 1, false, 10, 1001)

function log(partition: number): StoredLog {
  return {
    topicId: 'abc',
    partition,
    topic: 'orders/für alle\n',
    start: 1,
    end: 2 ** 53 - 1,
    epoch: 0,
    stamped: 1000,
    segments: [{ base: 0, next: 11, sizeBytes: 700, maxTimestamp: 1001, crc: 1, sealed: false }],
    state: state.toJSON(),
  }
}

const FULL: Checkpoint = {
  format: 1,
  sequence: 42,
  clean: true,
  durability: 'os',
  seed: 2 ** 32 - 1,
  logs: [log(0), log(1)],
  deleting: [{ topicId: 'gone', partition: 7 }],
  meta: [
    ['topic.orders', { partitions: 2 }],
    ['group "a"', ['x', null, 1.5]],
  ],
}

const EMPTY: Checkpoint = {
  format: 1,
  sequence: 0,
  clean: false,
  durability: 'fsync',
  seed: 0,
  logs: [],
  deleting: [],
  meta: [],
}

async function written(checkpoint: Checkpoint): Promise<Uint8Array> {
  const fs = new SimFs()
  await writeCheckpoint(fs, checkpoint, crc32c)
  return fs.bytesOf(CHECKPOINT_FILE)
}

/** What reading these bytes comes to: the checkpoint, or the error. */
async function reading(bytes: Uint8Array): Promise<Checkpoint | OdradekError | undefined> {
  const fs = new SimFs()
  fs.put(CHECKPOINT_FILE, bytes)
  try {
    return await readCheckpoint(fs, crc32c)
  } catch (error) {
    if (error instanceof OdradekError) return error
    throw error
  } finally {
    expect(fs.openFiles).toBe(0)
  }
}

/** Any text under a header that fits it. */
function headed(text: string, format = '1'): Uint8Array {
  const json = new TextEncoder().encode(text)
  const start = `odradek checkpoint ${format} ${json.length} `
  const crc = crc32c(json, crc32c(new TextEncoder().encode(start)))
  return joined([new TextEncoder().encode(`${start}${crc.toString(16).padStart(8, '0')}\n`), json])
}

describe('a checkpoint', () => {
  it.each([
    ['full', FULL],
    ['empty', EMPTY],
  ])('is read as it was written: %s', async (_, checkpoint) => {
    const read = await reading(await written(checkpoint))
    expect(read).toEqual(checkpoint)
    if (!(read instanceof OdradekError) && read?.logs[0] !== undefined) {
      expect(PartitionState.fromJSON(read.logs[0].state).toJSON()).toEqual(state.toJSON())
    }
  })

  it('says in its first line what it is, and has a line for each field and item', async () => {
    const [header, ...lines] = new TextDecoder().decode(await written(FULL)).split('\n')
    expect(header).toMatch(/^odradek checkpoint 1 \d+ [0-9a-f]{8}$/)
    expect(lines.slice(0, 6)).toEqual([
      '{"format":1,',
      '"sequence":42,',
      '"clean":true,',
      '"durability":"os",',
      '"seed":4294967295,',
      '"logs":[',
    ])
    expect(lines.filter((line) => line.startsWith('  {"topicId":"abc"'))).toHaveLength(2)
    expect(lines.slice(-2)).toEqual(['  ["group \\"a\\"",["x",null,1.5]]]}', ''])
    expect(await reading(headed(lines.join('\n')))).toEqual(FULL)
  })

  it('is none where there never was one, or only the beginning of the first', async () => {
    const fs = new SimFs()
    expect(await readCheckpoint(fs, crc32c)).toBeUndefined()
    fs.put('checkpoint.new', (await written(FULL)).subarray(0, 50))
    expect(await readCheckpoint(fs, crc32c)).toBeUndefined()
    await writeCheckpoint(fs, EMPTY, crc32c)
    expect(fs.files()).toEqual([CHECKPOINT_FILE])
    expect(await readCheckpoint(fs, crc32c)).toEqual(EMPTY)
  })
})

describe('a checkpoint that is broken', () => {
  it('is refused with any one bit flipped, by file and position', async () => {
    const bytes = await written(FULL)
    const start = bytes.indexOf(0x0a) + 1
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const at = bit >> 3
      const flipped = bytes.slice()
      flipped[at] = (flipped[at] as number) ^ (1 << (bit & 7))
      const error = (await reading(flipped)) as OdradekError
      expect({ at, code: error.code }).toEqual({ at, code: 'CORRUPT_LOG' })
      expect(error.message).toMatch(/^checkpoint, position \d+: /)
      if (at >= start) expect(error.message).toContain(`position ${start}: its CRC`)
    }
  })

  it('is refused with any one byte another, if the byte says something', async () => {
    const bytes = await written(EMPTY)
    for (let at = 0; at < bytes.length; at++) {
      for (const byte of [0, 0x0a, 0x20, 0x30, 0x31, 0x46, 0x66, 0xff]) {
        if (bytes[at] === byte) continue
        const changed = bytes.slice()
        changed[at] = byte
        expect({ at, byte, read: await reading(changed) }).toMatchObject({
          at,
          byte,
          read: { code: 'CORRUPT_LOG' },
        })
      }
    }
  })

  it('is refused cut at every byte, and with anything behind it', async () => {
    const bytes = await written(FULL)
    for (let length = 0; length < bytes.length; length++) {
      expect(await reading(bytes.subarray(0, length))).toMatchObject({ code: 'CORRUPT_LOG' })
    }
    for (const tail of ['\n', '\0', ' ', 'odradek']) {
      const longer = joined([bytes, new TextEncoder().encode(tail)])
      expect(await reading(longer)).toMatchObject({
        code: 'CORRUPT_LOG',
        message: expect.stringContaining(`position ${bytes.length}: `),
      })
    }
  })

  it('is refused as zeros, and as garbage', async () => {
    for (const length of [0, 1, 63, 64, 65, 5000]) {
      expect(await reading(new Uint8Array(length))).toMatchObject({ code: 'CORRUPT_LOG' })
      expect(await reading(new Uint8Array(length).fill(0x31))).toMatchObject({ code: 'CORRUPT_LOG' })
    }
  })

  it('is refused before room is made for a length that is not there', async () => {
    for (const length of ['9999999999', '1073741825', '00', '-1', '1e3']) {
      const bytes = new TextEncoder().encode(`odradek checkpoint 1 ${length} 00000000\n{}`)
      expect(await reading(bytes)).toMatchObject({ code: 'CORRUPT_LOG' })
    }
  })

  it('is refused before room is made for more than there can be', async () => {
    const fs = new SimFs()
    const header = `odradek checkpoint 1 ${2 ** 30 + 1} 00000000\n`
    fs.put(CHECKPOINT_FILE, new TextEncoder().encode(`${header}{}`))
    const open = fs.open.bind(fs)
    const sizeBytes = header.length + 2 ** 30 + 1
    fs.open = async (path, mode) => Object.assign(await open(path, mode), { size: async () => sizeBytes })
    const { arrayBuffers } = process.memoryUsage()
    await expect(readCheckpoint(fs, crc32c)).rejects.toThrow(`it has ${sizeBytes} bytes`)
    expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 30)
  })

  it.each([
    ['no JSON', '{'],
    ['no object', '3'],
    ['null', 'null'],
    ['a field too few', JSON.stringify({ ...EMPTY, meta: undefined })],
    ['another format than its header', JSON.stringify({ ...EMPTY, format: 2 })],
    ['half a sequence', JSON.stringify({ ...EMPTY, sequence: 0.5 })],
    ['clean as a number', JSON.stringify({ ...EMPTY, clean: 1 })],
    ['another durability', JSON.stringify({ ...EMPTY, durability: 'none' })],
    ['no seed', JSON.stringify({ ...EMPTY, seed: null })],
    ['an object of logs', JSON.stringify({ ...EMPTY, logs: {} })],
  ])('is refused though its CRC holds: %s', async (_, text) => {
    const { length } = `odradek checkpoint 1 ${text.length} 00000000\n`
    expect(await reading(headed(text))).toMatchObject({
      code: 'CORRUPT_LOG',
      message: expect.stringContaining(`position ${length}: `),
    })
  })

  it('is refused though its CRC holds: no UTF-8', async () => {
    const bytes = headed('"aa"')
    const json = Uint8Array.of(0x22, 0xff, 0xfe, 0x22)
    const crc = crc32c(json, crc32c(bytes.subarray(0, bytes.indexOf(0x0a) - 8)))
    const header = `odradek checkpoint 1 4 ${crc.toString(16).padStart(8, '0')}\n`
    expect(await reading(joined([new TextEncoder().encode(header), json]))).toMatchObject({
      code: 'CORRUPT_LOG',
    })
  })
})

describe('a checkpoint of a later version', () => {
  it.each(['2', '17', '999999999'])('is told from a broken one, and whose it is: %s', async (format) => {
    expect(await reading(headed('{"anything":true}', format))).toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining(`format ${format}`),
    })
    const broken = headed('{"anything":true}', format)
    broken[broken.length - 2] = 0x31
    expect(await reading(broken)).toMatchObject({ code: 'CORRUPT_LOG' })
  })
})

describe('replacing a checkpoint', () => {
  /** Writes 1, and then 2 with the second process, which is stopped or disturbed. */
  async function prepared(options = {}): Promise<SimFs> {
    const fs = new SimFs(options)
    await writeCheckpoint(fs, { ...FULL, sequence: 1 }, crc32c)
    return fs.kill()
  }

  const sequenceOf = async (fs: SimFs) => (await readCheckpoint(fs, crc32c))?.sequence

  async function crashes(options = {}): Promise<Set<unknown>> {
    const found = new Set<unknown>()
    for (const halt of ['before', 'after'] as const) {
      for (let stop = 1; ; stop++) {
        const fs = await prepared(options)
        fs.onOperation = (_, __, ordinal) => (ordinal === stop ? { halt } : undefined)
        const done = writeCheckpoint(fs, { ...FULL, sequence: 2 }, crc32c).then(() => true)
        const ended = await Promise.race([done, new Promise((resolve) => setImmediate(resolve, false))])
        for (const seed of range(1, 20)) {
          const read = await sequenceOf(fs.crash({ seed })).catch((error: OdradekError) => error.code)
          found.add(ended === true ? `written ${read}` : read)
        }
        if (ended === true) break
      }
    }
    return found
  }

  it('leaves the old one or the new one after a power loss at any operation, and the new one when it is done', async () => {
    expect([...(await crashes())].sort()).toEqual([1, 2, 'written 2'])
  })

  it('would leave a broken one without the sync of the file, and the old one without that of the directory', async () => {
    expect(await crashes({ missingSync: true })).toContain('CORRUPT_LOG')
    expect(await crashes({ missingDirectorySync: true })).toContain('written undefined')
  })

  it.each(['EIO', 'ENOSPC'])(
    'rejects when any operation fails with %s, keeps one of the two, and works again',
    async (fail) => {
      for (let at = 1; ; at++) {
        const fs = await prepared()
        fs.onOperation = (_, __, ordinal) => (ordinal === at ? { fail } : undefined)
        const code = await writeCheckpoint(fs, { ...FULL, sequence: 2 }, crc32c).then(
          () => undefined,
          (error: OdradekError) => error.code,
        )
        if (code === undefined) {
          expect(at).toBeGreaterThan(6)
          break
        }
        expect(code).toBe(fail === 'EIO' ? 'STORAGE_ERROR' : 'STORAGE_FULL')
        expect([1, 2]).toContain(await sequenceOf(fs.copy()))
        expect([1, 2]).toContain(await sequenceOf(fs.copy().crash({ seed: at })))
        await writeCheckpoint(fs, { ...FULL, sequence: 3 }, crc32c)
        expect(await sequenceOf(fs)).toBe(3)
      }
    },
  )

  it('gives back what it took on a full disk', async () => {
    const fs = new SimFs({ capacityBytes: 3 * 512 })
    await writeCheckpoint(fs, EMPTY, crc32c)
    const big = { ...EMPTY, meta: [['k', 'x'.repeat(2000)] as const] }
    await expect(writeCheckpoint(fs, big, crc32c)).rejects.toMatchObject({ code: 'STORAGE_FULL' })
    expect([fs.files(), fs.usedBytes, fs.openFiles]).toEqual([[CHECKPOINT_FILE], 512, 0])
    expect(await readCheckpoint(fs, crc32c)).toEqual(EMPTY)
  })

  it('tells why the disk refused, also when cleaning up fails as well', async () => {
    const fs = await prepared()
    let removed = 0
    fs.onOperation = (operation) => {
      if (operation === 'remove' && ++removed === 2) return { fail: 'EIO' }
      return operation === 'write' ? { fail: 'ENOSPC' } : undefined
    }
    await expect(writeCheckpoint(fs, FULL, crc32c)).rejects.toMatchObject({ code: 'STORAGE_FULL' })
    expect(removed).toBe(2)
  })

  it('does not call a disk that fails a broken checkpoint', async () => {
    const fs = await prepared()
    for (const operation of ['open', 'read'] as const) {
      fs.onOperation = (op) => (op === operation ? { fail: 'EIO' } : undefined)
      await expect(readCheckpoint(fs, crc32c)).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
    }
  })
})
