import { beforeEach, describe, expect, it } from 'vitest'
import { FilePool } from '../../../src/log/file/file-pool.ts'
import type { DataFile, Operation } from '../../../src/log/file/fs.ts'
import { SystemClock } from '../../../src/model/clock.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs, type SimOptions } from '../../support/sim-fs.ts'
import { codeOf, watch } from '../../support/world.ts'
import { Dice } from '../../torture/dice.ts'

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f']
const one = new Uint8Array([1])
const nothing = async (): Promise<void> => {}

let clock: ManualClock

beforeEach(() => {
  clock = new ManualClock()
})

/** A disk with the files a … f, and the operations that it sees. */
function disk(options: SimOptions = {}): { fs: SimFs; seen: string[] } {
  const fs = new SimFs({ clock, ...options })
  for (const name of NAMES) fs.put(name, new Uint8Array(10))
  const seen: string[] = []
  fs.onOperation = (operation, path) => {
    seen.push(`${operation} ${path}`)
    return undefined
  }
  return { fs, seen }
}

/** Lets operations of one kind fail from now on. */
function failing(fs: SimFs, operation: Operation, fail: string, path?: string): void {
  fs.onOperation = (each, at) => (each === operation && (path ?? at) === at ? { fail } : undefined)
}

/** Uses a file until told to stop. */
function hold(pool: FilePool, path: string, mode: 'read' | 'write' = 'read') {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  return { ...watchOf(pool.use(path, mode, () => held)), release }
}

function watchOf(promise: Promise<unknown>) {
  return { done: promise, watched: watch(promise) }
}

describe('a file pool', () => {
  it('gives a handle of its own to whoever needs one beside it, as soon as one is idle', async () => {
    const { fs } = disk({ maxOpenFiles: 3 })
    const pool = new FilePool(fs)
    const held = hold(pool, 'a')
    await pool.use('b', 'write', (file) => file.write(one, 0))
    await pool.use('c', 'read', nothing)
    const beside = await pool.fs.open('d', 'read')
    expect([pool.size, fs.openFiles]).toEqual([1, 2])
    const more = await pool.fs.open('e', 'read')
    const last = watchOf(pool.fs.open('f', 'read'))
    await clock.settle()
    expect(last.watched.state).toBe('waiting')
    held.release()
    await Promise.all([held.done, last.done])
    expect([pool.size, fs.openFiles]).toEqual([0, 3])
    expect(await codeOf(pool.fs.open('a', 'read'))).toBe('STORAGE_ERROR')
    for (const file of [beside, more]) await file.close()
    expect(await pool.fs.list('')).toEqual(NAMES)
  })

  it('opens a file once, for whoever comes meanwhile and afterwards', async () => {
    const { fs, seen } = disk()
    const pool = new FilePool(fs)
    const sizes = await Promise.all([1, 2, 3].map(() => pool.use('a', 'read', (file) => file.size())))
    expect(sizes).toEqual([10, 10, 10])
    await pool.use('a', 'read', nothing)
    expect(seen.filter((each) => each === 'open a')).toHaveLength(1)
    expect([pool.size, fs.openFiles]).toEqual([1, 1])
  })

  it('reads through a handle that writes, but does not write through one that reads', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs)
    await pool.use('a', 'write', (file) => file.write(one, 0))
    const into = new Uint8Array(1)
    await pool.use('a', 'read', (file) => file.read(into, 0))
    expect([into[0], fs.openFiles]).toEqual([1, 1])

    await pool.use('b', 'read', nothing)
    await pool.use('b', 'write', (file) => file.writeAll([one, one], 0))
    await pool.use('b', 'write', (file) => file.truncate(2))
    expect([...fs.bytesOf('b')]).toEqual([1, 1])
  })

  it('answers what the body does, and goes on after it throws', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs, 1)
    const failed = pool.use('a', 'read', async () => {
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(await pool.use('b', 'read', async () => 'yes')).toBe('yes')
    expect(fs.openFiles).toBe(1)
  })

  it('closes the least recently used one to open another', async () => {
    const { fs, seen } = disk()
    const pool = new FilePool(fs, 3)
    for (const name of ['a', 'b', 'c', 'a', 'd']) await pool.use(name, 'read', nothing)
    expect(seen).toEqual(['open a', 'open b', 'open c', 'close b', 'open d'])
    expect([pool.size, fs.openFiles]).toEqual([3, 3])
  })

  it('never closes one in use: who comes waits, and gets the first that is idle', async () => {
    const { fs, seen } = disk()
    const pool = new FilePool(fs, 2)
    const [a, b] = [hold(pool, 'a'), hold(pool, 'b')]
    const c = watch(pool.use('c', 'read', (file) => file.size()))
    await clock.settle()
    expect([c.state, pool.size]).toEqual(['waiting', 2])
    b.release()
    await clock.settle()
    expect(c).toMatchObject({ state: 'resolved', value: 10 })
    expect(seen.filter((each) => !each.startsWith('size'))).toEqual(['open a', 'open b', 'close b', 'open c'])
    a.release()
    await a.done
  })

  it('says what went wrong when a file cannot be opened, and tries anew the next time', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs, 1)
    const both = [codeOf(pool.use('x', 'read', nothing)), codeOf(pool.use('x', 'read', nothing))]
    expect(await Promise.all(both)).toEqual(['STORAGE_ERROR', 'STORAGE_ERROR'])
    expect(pool.size).toBe(0)
    fs.put('x', one)
    expect(await pool.use('x', 'read', (file) => file.size())).toBe(1)
  })

  it('stays within its bounds whatever comes, and every body has its file', async () => {
    const seed = 1 + Math.floor(Math.random() * 1e9)
    console.info(`file pool: seed ${seed}`)
    const dice = new Dice(seed)
    const { fs } = disk({ clock: new SystemClock(), turns: 3, seed })
    const pool = new FilePool(fs, 3)
    let most = 0
    const work = Array.from({ length: 300 }, async (_, i) => {
      const name = dice.pick(NAMES)
      const at = NAMES.indexOf(name)
      for (let turns = dice.below(200); turns > 0; turns--) await fs.exists(name)
      if (dice.chance(0.1)) return pool.forget(name)
      await pool.use(name, dice.pick(['read', 'write']), async (file) => {
        most = Math.max(most, fs.openFiles)
        if (i % 3 === 0) await file.read(new Uint8Array(1), 0)
        if (i % 5 === 0) await file.sync()
        expect(await file.size(), `seed ${seed}`).toBe(10)
        expect(at).toBeGreaterThanOrEqual(0)
      })
    })
    await Promise.all(work)
    expect(most, `seed ${seed}`).toBeLessThanOrEqual(3)
    await pool.close()
    expect([pool.size, fs.openFiles], `seed ${seed}`).toEqual([0, 0])
  })
})

describe('a process without handles', () => {
  it('closes what is idle, and tries again', async () => {
    const { fs, seen } = disk({ maxOpenFiles: 2 })
    const pool = new FilePool(fs)
    for (const name of ['a', 'b', 'c']) await pool.use(name, 'read', nothing)
    expect(seen).toEqual(['open a', 'open b', 'open c', 'close a', 'close b', 'open c'])
  })

  it('waits for the pool’s own ones when all are in use', async () => {
    const { fs } = disk({ maxOpenFiles: 2 })
    const pool = new FilePool(fs)
    const [a, b] = [hold(pool, 'a'), hold(pool, 'b')]
    const waiting = ['c', 'd'].map((name) => watch(pool.use(name, 'read', (file) => file.size())))
    await clock.settle()
    expect(waiting.map(({ state }) => state)).toEqual(['waiting', 'waiting'])
    a.release()
    await clock.settle()
    b.release()
    await clock.settle()
    expect(waiting.map(({ state }) => state)).toEqual(['resolved', 'resolved'])
  })

  it('is told so when the pool has none to give', async () => {
    const { fs } = disk()
    failing(fs, 'open', 'ENFILE')
    const pool = new FilePool(fs)
    await expect(pool.use('a', 'read', nothing)).rejects.toMatchObject({
      code: 'STORAGE_ERROR',
      message: expect.stringContaining('raise the limit of open files of the system'),
    })
    fs.onOperation = () => undefined
    await pool.use('a', 'read', nothing)
  })
})

describe('bytes that are not synced', () => {
  it('keep their handle while there are others to close, and are synced before it is closed', async () => {
    const { fs, seen } = disk()
    const pool = new FilePool(fs, 2)
    await pool.use('a', 'write', (file) => file.write(one, 0))
    for (const name of ['b', 'c']) await pool.use(name, 'write', nothing)
    expect(seen).toEqual(['open a', 'write a', 'open b', 'close b', 'open c'])
    await pool.use('c', 'write', (file) => file.truncate(3))
    seen.length = 0
    await pool.use('d', 'read', nothing)
    expect(seen).toEqual(['sync a', 'close a', 'open d'])
    await pool.close()
    expect(seen.slice(3).sort()).toEqual(['close c', 'close d', 'sync c'])
    expect(fs.pending).toBe(0)
  })

  it('are those that a sync may not have seen, too', async () => {
    const { fs, seen } = disk()
    const pool = new FilePool(fs, 1)
    await pool.use('a', 'write', async (file) => {
      await file.write(one, 0)
      await Promise.all([file.sync(), file.write(one, 5)])
    })
    seen.length = 0
    await pool.use('b', 'read', nothing)
    expect(seen).toEqual(['sync a', 'close a', 'open b'])
    expect(fs.pending).toBe(0)
  })

  it('are few enough to need no sync after one', async () => {
    const { fs, seen } = disk()
    const pool = new FilePool(fs, 1)
    await pool.use('a', 'write', async (file) => {
      await file.write(one, 0)
      await file.sync()
    })
    seen.length = 0
    await pool.use('b', 'read', nothing)
    expect(seen).toEqual(['close a', 'open b'])
  })

  it('whose sync failed at the closing are never said to be safe by a later handle', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs, 1)
    await pool.use('a', 'write', (file) => file.write(one, 0))
    failing(fs, 'sync', 'EIO', 'a')
    await pool.use('b', 'read', nothing)
    fs.onOperation = () => undefined
    const sync = (file: DataFile): Promise<void> => file.sync()
    expect(await codeOf(pool.use('a', 'write', sync))).toBe('STORAGE_ERROR')
    await pool.use('b', 'write', sync)
    expect(await codeOf(pool.use('a', 'write', sync))).toBe('STORAGE_ERROR')
    expect(fs.pending).toBe(1)
  })

  it('stay unsafe after a sync that failed, though the next one would succeed', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs)
    failing(fs, 'sync', 'EIO')
    const writeAndSync = async (file: DataFile): Promise<void> => {
      await file.write(one, 0)
      await file.sync()
    }
    expect(await codeOf(pool.use('a', 'write', writeAndSync))).toBe('STORAGE_ERROR')
    fs.onOperation = () => undefined
    expect(await codeOf(pool.use('a', 'write', writeAndSync))).toBe('STORAGE_ERROR')
    await pool.forget('a')
    await pool.use('a', 'write', writeAndSync)
  })
})

describe('forget', () => {
  it('closes all handles of the file, without a sync', async () => {
    const { fs, seen } = disk()
    const pool = new FilePool(fs)
    await pool.use('a', 'read', nothing)
    await pool.use('a', 'write', (file) => file.write(one, 0))
    await pool.use('b', 'read', nothing)
    seen.length = 0
    await pool.forget('a')
    expect(seen).toEqual(['close a', 'close a'])
    await pool.forget('unknown')
    expect(fs.openFiles).toBe(1)
  })

  it('waits for who uses it, and the next one opens it anew', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs)
    const holder = hold(pool, 'a')
    await clock.settle()
    const forgotten = watch(pool.forget('a'))
    await fs.remove('a')
    fs.put('a', new Uint8Array(77))
    expect(await pool.use('a', 'read', (file) => file.size())).toBe(77)
    await clock.settle()
    expect(forgotten.state).toBe('waiting')
    holder.release()
    await clock.settle()
    expect([forgotten.state, fs.openFiles]).toEqual(['resolved', 1])
  })

  it('waits for one that is being opened, also when that fails', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs)
    const opening = watch(pool.use('a', 'read', (file) => file.size()))
    const broken = watch(pool.use('x', 'read', nothing))
    await Promise.all([pool.forget('a'), pool.forget('x')])
    expect([opening.state, broken.state, fs.openFiles, pool.size]).toEqual(['resolved', 'rejected', 0, 0])
  })
})

describe('close', () => {
  it('waits for the bodies, refuses who comes and who waits, and leaves nothing open', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs, 1)
    const a = hold(pool, 'a')
    const b = codeOf(pool.use('b', 'read', nothing))
    await clock.settle()
    const closed = watch(pool.close())
    await clock.settle()
    expect(closed.state).toBe('waiting')
    expect(await b).toBe('CLOSED')
    expect(await codeOf(pool.use('a', 'read', nothing))).toBe('CLOSED')
    a.release()
    await clock.settle()
    expect([closed.state, fs.openFiles]).toEqual(['resolved', 0])
  })

  it('does not mind a handle that cannot be closed', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs)
    await pool.use('a', 'read', nothing)
    failing(fs, 'close', 'EIO')
    await pool.close()
    expect(pool.size).toBe(0)
  })

  it('is the pool’s, not the body’s', async () => {
    const { fs } = disk()
    const pool = new FilePool(fs)
    await pool.use('a', 'read', (file) => file.close())
    expect(await pool.use('a', 'read', (file) => file.size())).toBe(10)
  })
})
