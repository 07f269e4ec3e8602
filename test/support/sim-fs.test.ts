/** The simulated disk loses what it may, keeps what it must, and does both again for the same seed. */
import { describe, expect, it } from 'vitest'
import type { DataFile } from '../../src/log/file/fs.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { SimFs, type SimOptions } from './sim-fs.ts'
import { codeOf, watch } from './world.ts'

const SEEDS = Array.from({ length: 200 }, (_, seed) => seed)

function filled(sizeBytes: number, byte: number): Uint8Array {
  return new Uint8Array(sizeBytes).fill(byte)
}

/** A file whose name and bytes are on the disk. */
async function durable(bytes: Uint8Array, options?: SimOptions): Promise<{ fs: SimFs; file: DataFile }> {
  const fs = new SimFs(options)
  const file = await fs.open('a', 'create')
  await file.write(bytes, 0)
  await file.sync()
  await fs.syncDirectory('')
  return { fs, file }
}

/** What survives of a file, as text, for each seed; '-' when the file is gone. */
function outcomes(fs: SimFs, path = 'a'): Set<string> {
  return new Set(
    SEEDS.map((seed) => {
      const next = fs.copy().crash({ seed })
      return next.files().includes(path) ? runs(next.bytesOf(path)) : '-'
    }),
  )
}

/** The first byte of every sector, with the odd length at the end. */
function runs(bytes: Uint8Array): string {
  const sectors = Array.from({ length: Math.ceil(bytes.length / 512) }, (_, i) => bytes[i * 512])
  return sectors.join('') + (bytes.length % 512 === 0 ? '' : `+${bytes.length % 512}`)
}

describe('power loss', () => {
  it('keeps synced bytes under a synced name, always', async () => {
    const { fs } = await durable(filled(1_024, 1))
    expect(fs.pending).toBe(0)
    expect(outcomes(fs)).toEqual(new Set(['11']))
  })

  it('may lose the name of a file whose bytes are synced, and the bytes of one whose name is', async () => {
    const fs = new SimFs()
    const file = await fs.open('a', 'create')
    await file.write(filled(512, 1), 0)
    await file.sync()
    expect(outcomes(fs)).toEqual(new Set(['-', '1']))

    const other = new SimFs()
    await (await other.open('a', 'create')).write(filled(512, 1), 0)
    await other.syncDirectory('')
    expect(outcomes(other)).toEqual(new Set(['', '0', '1']))
  })

  it('tears a write, and mixes old and new sectors of it in any order', async () => {
    const { fs, file } = await durable(filled(1_536, 1))
    await file.write(filled(1_536, 2), 0)
    expect(outcomes(fs)).toEqual(new Set(['111', '112', '121', '122', '211', '212', '221', '222']))
  })

  it('may lose the first of two writes and keep the second', async () => {
    const { fs, file } = await durable(filled(1_024, 1))
    await file.write(filled(512, 2), 0)
    await file.write(filled(512, 3), 512)
    expect(outcomes(fs)).toContain('13')
  })

  it('leaves a sector that was written twice in any of its states', async () => {
    const { fs, file } = await durable(filled(512, 1))
    await file.write(filled(512, 2), 0)
    await file.write(filled(512, 3), 0)
    expect(outcomes(fs)).toEqual(new Set(['1', '2', '3']))
  })

  it('may leave zeros where a file grew, and a size in the middle of what was appended', async () => {
    const { fs, file } = await durable(filled(512, 1))
    await file.write(filled(600, 2), 512)
    const seen = outcomes(fs)
    for (const outcome of ['1', '12', '100+88', '120+88', '102+88', '122+88']) expect(seen).toContain(outcome)
  })

  it('loses only a suffix of what was appended, for some seeds', async () => {
    const { fs, file } = await durable(new Uint8Array(0))
    for (let i = 0; i < 8; i++) await file.write(filled(512, i + 1), i * 512)
    const prefixes = [...outcomes(fs)].filter((outcome) => '12345678'.startsWith(outcome))
    expect(prefixes.length).toBeGreaterThan(6)
  })

  it('may undo a truncation, but never brings back what it cut off', async () => {
    const { fs, file } = await durable(filled(1_024, 1))
    await file.truncate(512)
    await file.write(filled(512, 2), 1_024)
    const seen = outcomes(fs)
    expect(seen).toContain('11')
    expect(seen).toContain('1')
    expect(seen).toContain('102')
    expect(seen).not.toContain('112')
    await file.sync()
    expect(outcomes(fs)).toEqual(new Set(['102']))
  })

  it('takes an unsynced rename or leaves it, whole, whatever became of the bytes', async () => {
    const { fs } = await durable(filled(512, 1))
    const aside = await fs.open('a.new', 'create')
    await aside.write(filled(512, 2), 0)
    await fs.rename('a.new', 'a')
    expect(fs.files()).toEqual(['a'])
    const seen = outcomes(fs)
    expect(seen).toEqual(new Set(['', '0', '1', '2']))
    for (const seed of SEEDS) {
      const next = fs.copy().crash({ seed })
      if (runs(next.bytesOf('a')) !== '1') expect(next.files()).toEqual(['a'])
    }
    await aside.sync()
    expect(outcomes(fs)).toEqual(new Set(['1', '2']))
    await fs.syncDirectory('')
    expect(outcomes(fs)).toEqual(new Set(['2']))
  })

  it('makes a rename between directories wait for both', async () => {
    const fs = new SimFs()
    fs.put('from/a', filled(512, 1))
    fs.put('to/b', filled(512, 2))
    await fs.rename('from/a', 'to/a')
    await fs.syncDirectory('to')
    expect(outcomes(fs, 'from/a')).toEqual(new Set(['-', '1']))
    await fs.syncDirectory('from')
    expect(outcomes(fs, 'from/a')).toEqual(new Set(['-']))
    expect(outcomes(fs, 'to/a')).toEqual(new Set(['1']))
  })

  it('keeps no later change to a file without those before it', async () => {
    const fs = new SimFs()
    fs.put('from/a', filled(512, 1))
    fs.put('to/b', filled(512, 2))
    await fs.rename('from/a', 'to/a')
    await fs.rename('to/a', 'to/c')
    await fs.syncDirectory('to')
    for (const seed of SEEDS) expect(fs.copy().crash({ seed }).files()).toEqual(['to/b', 'to/c'])
  })

  it('keeps the order of changes to one name', async () => {
    const fs = new SimFs()
    await (await fs.open('a', 'create')).write(filled(512, 1), 0)
    await (await fs.open('x', 'create')).write(filled(512, 2), 0)
    await fs.rename('a', 'x')
    const next = fs.crash({ seed: 1, share: 1 })
    expect(next.files()).toEqual(['x'])
    expect(runs(next.bytesOf('x'))).toBe('1')
  })

  it('may bring back what was removed, until the directory is synced', async () => {
    const { fs } = await durable(filled(512, 1))
    await fs.remove('a')
    expect(outcomes(fs)).toEqual(new Set(['-', '1']))
    await fs.syncDirectory('')
    expect(outcomes(fs)).toEqual(new Set(['-']))
  })

  it('loses all below a directory whose own name was not synced', async () => {
    const fs = new SimFs()
    await fs.makeDirectory('logs/x')
    const file = await fs.open('logs/x/a', 'create')
    await file.write(filled(512, 1), 0)
    await file.sync()
    await fs.syncDirectory('logs/x')
    await fs.syncDirectory('')
    expect(outcomes(fs, 'logs/x/a')).toEqual(new Set(['-', '1']))
    await fs.syncDirectory('logs')
    expect(outcomes(fs, 'logs/x/a')).toEqual(new Set(['1']))
  })

  it('of a name that was used again, keeps any of its files', async () => {
    const { fs } = await durable(filled(512, 1))
    await fs.remove('a')
    const file = await fs.open('a', 'create')
    await file.write(filled(512, 2), 0)
    await file.sync()
    expect(outcomes(fs)).toEqual(new Set(['-', '1', '2']))
  })

  it('is the same for the same seed, and loses nothing or all by the share that is asked for', async () => {
    const { fs, file } = await durable(filled(4_096, 1))
    await file.write(filled(4_096, 2), 0)
    for (const seed of SEEDS) {
      expect(fs.crash({ seed }).bytesOf('a')).toEqual(fs.crash({ seed }).bytesOf('a'))
    }
    expect(runs(fs.crash({ seed: 1, share: 0 }).bytesOf('a'))).toBe('11111111')
    expect(runs(fs.crash({ seed: 1, share: 1 }).bytesOf('a'))).toBe('22222222')
  })

  it('leaves a machine on which all is synced, and that goes on from there', async () => {
    const { fs, file } = await durable(filled(512, 1))
    await file.write(filled(512, 2), 512)
    const next = fs.crash({ seed: 3, share: 1 })
    expect(next.pending).toBe(0)
    const again = await next.open('a', 'write')
    await again.write(filled(512, 3), 0)
    expect(outcomes(next)).toEqual(new Set(['12', '32']))
  })
})

describe('sync', () => {
  it('covers what was written before it began, not what came while it ran', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock })
    const file = await fs.open('a', 'create')
    await fs.syncDirectory('')
    await file.write(filled(512, 1), 0)
    fs.onOperation = (operation) => (operation === 'sync' ? { delayMs: 3_000 } : undefined)
    const synced = watch(file.sync())
    await file.write(filled(512, 2), 0)
    await clock.advance(2_999)
    expect(synced.state).toBe('waiting')
    expect(fs.copy().crash({ seed: 1, share: 0 }).bytesOf('a')).toEqual(new Uint8Array(0))
    await clock.advance(1)
    expect(synced.state).toBe('resolved')
    expect(outcomes(fs)).toEqual(new Set(['1', '2']))
  })

  it('that fails lets go of what was written: a later one succeeds, and the bytes are not there', async () => {
    const { fs, file } = await durable(filled(1_024, 1))
    await file.write(filled(1_024, 2), 0)
    fs.onOperation = (operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined)
    expect(await codeOf(file.sync())).toBe('STORAGE_ERROR')
    fs.onOperation = () => undefined
    await file.write(filled(512, 3), 512)
    await file.sync()
    expect(runs(fs.bytesOf('a'))).toBe('23')
    expect(runs(fs.kill().bytesOf('a'))).toBe('23')
    expect(runs(fs.crash({ seed: 1, share: 0 }).bytesOf('a'))).toBe('13')
    expect(outcomes(fs)).toEqual(new Set(['13', '23']))
  })

  it('that fails lets go of the size too, until something is written beyond', async () => {
    const { fs, file } = await durable(filled(512, 1))
    await file.write(filled(512, 2), 512)
    fs.onOperation = (operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined)
    expect(await codeOf(file.sync())).toBe('STORAGE_ERROR')
    fs.onOperation = () => undefined
    await file.sync()
    expect(runs(fs.copy().crash({ seed: 1, share: 0 }).bytesOf('a'))).toBe('1')
    const copy = fs.copy()
    const again = await copy.open('a', 'write')
    await again.write(filled(512, 3), 512)
    await again.sync()
    expect(runs(copy.crash({ seed: 1, share: 0 }).bytesOf('a'))).toBe('13')
    await file.write(filled(512, 3), 1_024)
    await file.sync()
    expect(runs(fs.crash({ seed: 1, share: 0 }).bytesOf('a'))).toBe('103')
  })

  it('that failed in a process that is gone has let go for the next one too', async () => {
    const { fs, file } = await durable(filled(512, 1))
    await file.write(filled(512, 2), 0)
    fs.onOperation = (operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined)
    expect(await codeOf(file.sync())).toBe('STORAGE_ERROR')
    const next = fs.kill()
    const again = await next.open('a', 'write')
    await again.sync()
    expect(runs(next.bytesOf('a'))).toBe('2')
    expect(runs(next.crash({ seed: 1, share: 0 }).bytesOf('a'))).toBe('1')
  })

  it('of a directory covers the names of before it began', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock })
    await fs.open('a', 'create')
    fs.onOperation = (operation) => (operation === 'syncDirectory' ? { delayMs: 10 } : undefined)
    const synced = fs.syncDirectory('')
    await fs.open('b', 'create')
    await clock.advance(10)
    await synced
    expect(fs.crash({ seed: 1, share: 0 }).files()).toEqual(['a'])
  })

  it('does nothing with `missingSync`, which a test of power loss must notice', async () => {
    const { fs } = await durable(filled(512, 1), { missingSync: true })
    expect(outcomes(fs)).toContain('')
    const { fs: other } = await durable(filled(512, 1), { missingDirectorySync: true })
    expect(outcomes(other)).toContain('-')
  })
})

describe('a process that is killed', () => {
  it('leaves every write behind, and they can still be lost by the machine', async () => {
    const { fs, file } = await durable(filled(512, 1))
    await file.write(filled(512, 2), 0)
    await fs.open('b', 'create')
    const next = fs.kill()
    expect(next.files()).toEqual(['a', 'b'])
    expect(runs(next.bytesOf('a'))).toBe('2')
    expect(outcomes(next)).toEqual(new Set(['1', '2']))
    expect(outcomes(next, 'b')).toEqual(new Set(['', '-']))
    const again = await next.open('a', 'write')
    await again.sync()
    await next.syncDirectory('')
    expect(outcomes(next)).toEqual(new Set(['2']))
    expect(outcomes(next, 'b')).toEqual(new Set(['']))
  })

  it('learns nothing more, and changes nothing more', async () => {
    const clock = new ManualClock()
    const { fs, file } = await durable(filled(512, 1), { clock })
    const running = watch(file.write(filled(512, 2), 0))
    const next = fs.kill()
    const late = [watch(file.write(filled(512, 3), 0)), watch(fs.open('b', 'create')), watch(file.close())]
    await clock.settle()
    expect([running, ...late].map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting', 'waiting'])
    expect(runs(next.bytesOf('a'))).toBe('1')
    expect(fs.halted).toBe(true)
    expect(next.openFiles).toBe(0)
  })

  it('stops at the operation that is named, before it, or after it without an answer', async () => {
    for (const halt of ['before', 'after'] as const) {
      const { fs, file } = await durable(filled(512, 1))
      const before = fs.operations
      fs.onOperation = (operation, path, ordinal) => {
        expect([operation, path, ordinal]).toEqual(['write', 'a', before + 1])
        return { halt }
      }
      const write = watch(file.write(filled(512, 2), 0))
      await new ManualClock().settle()
      expect(write.state).toBe('waiting')
      expect(runs(fs.kill().bytesOf('a'))).toBe(halt === 'before' ? '1' : '2')
    }
  })

  it('can die inside a write, in the hook too', async () => {
    const { fs, file } = await durable(filled(512, 1))
    let next: SimFs | undefined
    let writes = 0
    fs.onOperation = () => {
      writes++
      if (writes === 2) next = fs.kill()
      return { shortBytes: 100 }
    }
    watch(file.write(filled(512, 2), 0))
    await new ManualClock().settle()
    const bytes = next?.bytesOf('a') ?? new Uint8Array(0)
    expect(bytes.filter((byte) => byte === 2).length).toBe(100)
    expect(bytes.length).toBe(512)
  })
})

describe('faults', () => {
  it('fail one operation, with the error of the seam and without an effect', async () => {
    const { fs, file } = await durable(filled(512, 1))
    const at = fs.operations + 1
    fs.onOperation = (_, __, ordinal) => (ordinal === at ? { fail: 'EIO' } : undefined)
    await expect(file.write(filled(512, 2), 0)).rejects.toMatchObject({
      code: 'STORAGE_ERROR',
      message: expect.stringContaining('cannot write to a: EIO'),
      cause: { code: 'EIO' },
    })
    expect(runs(fs.bytesOf('a'))).toBe('1')
    await file.write(filled(512, 3), 0)
    expect(runs(fs.bytesOf('a'))).toBe('3')
  })

  it('reach the operations on names too', async () => {
    const { fs } = await durable(filled(512, 1))
    fs.onOperation = () => ({ fail: 'EMFILE' })
    expect(await codeOf(fs.open('a', 'read'))).toBe('STORAGE_ERROR')
    expect(await codeOf(fs.rename('a', 'b'))).toBe('STORAGE_ERROR')
    expect(fs.files()).toEqual(['a'])
  })

  it('cut a write short, which goes on with the rest, and may fail there', async () => {
    const { fs, file } = await durable(filled(1_024, 1))
    const writes: number[] = []
    fs.onOperation = (_, __, ordinal) => {
      writes.push(ordinal)
      return writes.length < 3 ? { shortBytes: 512 - writes.length } : { fail: 'ENOSPC' }
    }
    expect(await codeOf(file.writeAll([filled(600, 2), filled(600, 3)], 0))).toBe('STORAGE_FULL')
    expect(writes.length).toBe(3)
    const bytes = fs.bytesOf('a')
    expect([bytes[599], bytes[600], bytes[1_020], bytes[1_021]]).toEqual([2, 3, 3, 1])
  })

  it('fill the disk: what fits is written, and freed space works again', async () => {
    const fs = new SimFs({ capacityBytes: 4_096 })
    const file = await fs.open('a', 'create')
    await file.write(filled(3_000, 1), 0)
    expect(await codeOf(file.write(filled(2_000, 2), 3_000))).toBe('STORAGE_FULL')
    expect([await file.size(), fs.usedBytes]).toEqual([4_096, 4_096])
    await file.write(filled(4_096, 3), 0)
    await file.truncate(1_000)
    expect(fs.usedBytes).toBe(1_024)
    const other = await fs.open('b', 'create')
    await other.write(filled(3_072, 4), 0)
    expect(await codeOf(file.write(filled(512, 5), 1_024))).toBe('STORAGE_FULL')

    await fs.remove('b')
    expect(fs.usedBytes, 'an open handle keeps it').toBe(4_096)
    await other.close()
    expect(fs.usedBytes).toBe(1_024)
    await file.write(filled(512, 5), 1_024)
    expect(fs.crash({ seed: 1, share: 1 }).usedBytes).toBe(1_536)
  })

  it('run out of handles', async () => {
    const { fs, file } = await durable(filled(512, 1), { maxOpenFiles: 2 })
    await fs.open('a', 'read')
    await expect(fs.open('a', 'read')).rejects.toMatchObject({ cause: { code: 'EMFILE' } })
    await file.close()
    await fs.open('a', 'read')
  })
})

describe('time', () => {
  it('does not pass without a clock: an operation takes microtasks', async () => {
    const { fs } = await durable(filled(512, 1))
    let turned = false
    setImmediate(() => {
      turned = true
    })
    await fs.exists('a')
    expect(turned).toBe(false)
    fs.onOperation = () => ({ delayMs: 1_000 })
    await expect(fs.exists('a')).rejects.toThrow('a delay needs a clock')
  })

  it('passes with one: `settle` waits for the disk, and other code runs meanwhile', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock, turns: 3 })
    let exists: boolean | undefined
    let turned = false
    setImmediate(() => {
      turned = true
    })
    const work = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) exists = await fs.exists('a')
    }
    const done = watch(work())
    await clock.settle()
    expect(done.state).toBe('resolved')
    expect([exists, turned]).toEqual([false, true])
  })

  it('lets operations that run together end in any order, by the seed', async () => {
    const order = async (seed: number): Promise<string> => {
      const clock = new ManualClock()
      const fs = new SimFs({ clock, turns: 4, seed })
      const ended: string[] = []
      for (const name of ['a', 'b', 'c']) void fs.exists(name).then(() => ended.push(name))
      await clock.settle()
      return ended.join('')
    }
    expect(await order(1)).toBe(await order(1))
    const orders = await Promise.all(SEEDS.slice(0, 30).map(order))
    expect(new Set(orders).size).toBeGreaterThan(2)
  })

  it('writes what the bytes are at the end: a buffer that is used again too early shows', async () => {
    const { fs, file } = await durable(new Uint8Array(0), { clock: new ManualClock() })
    const buffer = filled(512, 1)
    const write = file.write(buffer, 0)
    buffer.fill(2)
    await write
    expect(runs(fs.bytesOf('a'))).toBe('2')
  })
})

describe('damage', () => {
  it('flips, cuts, appends, puts and erases, in what a crash leaves too', async () => {
    const { fs, file } = await durable(filled(1_024, 1))
    await file.write(filled(512, 4), 0)
    fs.flipBit('a', 0)
    fs.flipBit('a', 600, 3)
    expect([fs.bytesOf('a')[0], fs.bytesOf('a')[600]]).toEqual([5, 9])
    for (const seed of SEEDS.slice(0, 20)) {
      const bytes = fs.crash({ seed }).bytesOf('a')
      expect([0, 5]).toContain(bytes[0])
      expect(bytes[600]).toBe(9)
    }
    fs.resize('a', 100)
    fs.append('a', filled(3, 7))
    expect([...fs.bytesOf('a').subarray(99)]).toEqual([4, 7, 7, 7])
    fs.put('x/y/b', filled(1, 1))
    expect(fs.files()).toEqual(['a', 'x/y/b'])
    expect(fs.crash({ seed: 1, share: 0 }).files()).toEqual(['a', 'x/y/b'])
    fs.erase('a')
    expect(fs.crash({ seed: 1, share: 0 }).files()).toEqual(['x/y/b'])
  })

  it('of a copy leaves the original alone', async () => {
    const { fs, file } = await durable(filled(512, 1))
    const copy = fs.copy()
    copy.flipBit('a', 0)
    await file.write(filled(512, 2), 0)
    expect([fs.bytesOf('a')[0], copy.bytesOf('a')[0]]).toEqual([2, 0])
    expect(fs.halted).toBe(false)
  })
})
