/** The seam to the disk keeps its word over the real disk and over the simulated one. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FileSystem } from '../../../src/log/file/fs.ts'
import {
  encodeName,
  isMissing,
  isOutOfHandles,
  parentOf,
  storageError,
  systemCode,
  totalBytes,
} from '../../../src/log/file/fs.ts'
import { NodeFileSystem } from '../../../src/log/file/fs-node.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
const bytesOf = (string: string): Uint8Array => new TextEncoder().encode(string)

/** The whole of a file. */
async function contents(fs: FileSystem, path: string): Promise<string> {
  const file = await fs.open(path, 'read')
  const bytes = new Uint8Array(await file.size())
  expect(await file.read(bytes, 0)).toBe(bytes.length)
  await file.close()
  return text(bytes)
}

async function put(fs: FileSystem, path: string, string: string): Promise<void> {
  const file = await fs.open(path, 'create')
  await file.write(bytesOf(string), 0)
  await file.close()
}

/** The code of the system's that an operation fails with, behind an error of the seam's. */
async function failure(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toMatchObject({ name: 'OdradekError', code: 'STORAGE_ERROR' })
  return systemCode(error) ?? 'none'
}

const systems: [name: string, open: (directory: string) => Promise<FileSystem>][] = [
  ['the real disk', (directory) => NodeFileSystem.at(directory)],
  ['the simulated disk', async () => new SimFs()],
  ['the simulated disk on a clock', async () => new SimFs({ clock: new ManualClock(), turns: 3 })],
]

describe.each(systems)('%s', (_, make) => {
  let directory: string
  let fs: FileSystem

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'odradek-fs-'))
    fs = await make(directory)
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  it('creates a file, once, and reads what was written, also in the middle and beyond the end', async () => {
    const file = await fs.open('a', 'create')
    await file.write(bytesOf('hello'), 0)
    await file.write(bytesOf('EL'), 1)
    expect(await file.size()).toBe(5)
    const into = new Uint8Array(4)
    expect([await file.read(into, 1), text(into)]).toEqual([4, 'ELlo'])
    expect([await file.read(into, 3), text(into)]).toEqual([2, 'lolo'])
    expect(await file.read(into, 5)).toBe(0)
    expect(await file.read(into, 500)).toBe(0)
    expect(await file.read(new Uint8Array(0), 0)).toBe(0)
    await file.close()
    expect(await failure(fs.open('a', 'create'))).toBe('EEXIST')
    expect(await contents(fs, 'a')).toBe('hELlo')
  })

  it('leaves zeros where nothing was written', async () => {
    const file = await fs.open('a', 'create')
    await file.write(bytesOf('x'), 3)
    expect(await contents(fs, 'a')).toBe('\0\0\0x')
    await file.close()
  })

  it('writes pieces in a row, empty ones and thousands of them', async () => {
    const file = await fs.open('a', 'create')
    await file.writeAll([bytesOf('ab'), new Uint8Array(0), bytesOf('c'), bytesOf('def')], 1)
    await file.writeAll([], 9)
    await file.writeAll([new Uint8Array(0)], 9)
    await file.write(new Uint8Array(0), 9)
    expect(await contents(fs, 'a')).toBe('\0abcdef')
    const pieces = Array.from({ length: 3_000 }, (_, i) => bytesOf(String(i % 10)))
    await file.writeAll(pieces, 0)
    expect(await contents(fs, 'a')).toBe('0123456789'.repeat(300))
    await file.close()
  })

  it('opens what is there for writing, without touching it, and nothing else', async () => {
    await put(fs, 'a', 'hello')
    const file = await fs.open('a', 'write')
    const into = new Uint8Array(5)
    await file.read(into, 0)
    expect(text(into)).toBe('hello')
    await file.write(bytesOf('J'), 0)
    await file.close()
    expect(await contents(fs, 'a')).toBe('Jello')
    expect(await failure(fs.open('b', 'write'))).toBe('ENOENT')
    expect(await failure(fs.open('b', 'read'))).toBe('ENOENT')
    expect(await failure(fs.open('b/c', 'create'))).toBe('ENOENT')
    expect(await failure(fs.open('a/c', 'read'))).toBe('ENOTDIR')
  })

  it('writes nothing through a handle for reading', async () => {
    await put(fs, 'a', 'hello')
    const file = await fs.open('a', 'read')
    expect(await failure(file.write(bytesOf('J'), 0))).toBe('EBADF')
    expect(['EBADF', 'EINVAL']).toContain(await failure(file.truncate(1)))
    await file.sync()
    await file.close()
    expect(await contents(fs, 'a')).toBe('hello')
  })

  it('closes twice, and does nothing with what is closed', async () => {
    const file = await fs.open('a', 'create')
    await file.close()
    await file.close()
    expect(await failure(file.write(bytesOf('x'), 0))).toBe('EBADF')
    expect(await failure(file.read(new Uint8Array(1), 0))).toBe('EBADF')
    expect(await failure(file.sync())).toBe('EBADF')
  })

  it('cuts a file, and extends it with zeros, also where there were bytes before', async () => {
    await put(fs, 'a', 'hello')
    const file = await fs.open('a', 'write')
    await file.truncate(2)
    expect(await contents(fs, 'a')).toBe('he')
    await file.truncate(4)
    expect(await contents(fs, 'a')).toBe('he\0\0')
    await file.sync()
    await file.close()
  })

  it('lists names, sorted, files and directories; none where there is no directory', async () => {
    for (const name of ['b', 'a', 'C']) await put(fs, name, '')
    await fs.makeDirectory('d/e')
    expect(await fs.list('')).toEqual(['C', 'a', 'b', 'd'])
    expect(await fs.list('d')).toEqual(['e'])
    expect(await fs.list('d/e')).toEqual([])
    expect(await fs.list('nowhere/at/all')).toEqual([])
    expect(await failure(fs.list('a'))).toBe('ENOTDIR')
  })

  it('makes a directory with its parents, again too, and says what exists', async () => {
    await fs.makeDirectory('x/y/z')
    await fs.makeDirectory('x/y/z')
    await put(fs, 'x/y/a', '')
    expect(await fs.exists('x/y')).toBe(true)
    expect(await fs.exists('x/y/a')).toBe(true)
    expect(await fs.exists('x/a')).toBe(false)
    expect(await fs.exists('nowhere/a')).toBe(false)
    expect(await failure(fs.makeDirectory('x/y/a'))).toBe('EEXIST')
  })

  it('renames over what is there, and handles go on with the file they were opened on', async () => {
    await put(fs, 'a', 'old')
    await fs.makeDirectory('d')
    const aside = await fs.open('d/new', 'create')
    await aside.write(bytesOf('new'), 0)
    const old = await fs.open('a', 'read')
    await fs.rename('d/new', 'a')
    expect(await contents(fs, 'a')).toBe('new')
    expect(await fs.list('d')).toEqual([])
    await aside.write(bytesOf('N'), 0)
    expect(await contents(fs, 'a')).toBe('New')
    const into = new Uint8Array(3)
    await old.read(into, 0)
    expect(text(into)).toBe('old')
    await fs.rename('a', 'a')
    expect(await contents(fs, 'a')).toBe('New')
    expect(await failure(fs.rename('nothing', 'a'))).toBe('ENOENT')
    expect(await failure(fs.rename('a', 'd'))).toBe('EISDIR')
    await Promise.all([aside.close(), old.close()])
  })

  it('renames a directory with what is in it', async () => {
    await fs.makeDirectory('d')
    await put(fs, 'd/a', 'inside')
    await fs.rename('d', 'e')
    expect(await contents(fs, 'e/a')).toBe('inside')
    expect(await fs.exists('d')).toBe(false)
  })

  it('removes a file, again too, while a handle goes on', async () => {
    await put(fs, 'a', 'hello')
    const file = await fs.open('a', 'read')
    await fs.remove('a')
    await fs.remove('a')
    expect(await fs.exists('a')).toBe(false)
    expect(await file.size()).toBe(5)
    await put(fs, 'a', 'other')
    const into = new Uint8Array(5)
    await file.read(into, 0)
    expect(text(into)).toBe('hello')
    await file.close()
    await fs.makeDirectory('d')
    expect(['EISDIR', 'EPERM']).toContain(await failure(fs.remove('d')))
  })

  it('removes an empty directory, again too, and no other', async () => {
    await fs.makeDirectory('d')
    await put(fs, 'd/a', '')
    expect(await failure(fs.removeDirectory('d'))).toBe('ENOTEMPTY')
    await fs.remove('d/a')
    await fs.removeDirectory('d')
    await fs.removeDirectory('d')
    expect(await fs.exists('d')).toBe(false)
    await put(fs, 'a', '')
    expect(await failure(fs.removeDirectory('a'))).toBe('ENOTDIR')
  })

  it('syncs files and directories that are there', async () => {
    await fs.makeDirectory('d')
    const file = await fs.open('d/a', 'create')
    await file.write(bytesOf('x'), 0)
    await file.sync()
    await file.close()
    await fs.syncDirectory('d')
    await fs.syncDirectory('')
    expect(await failure(fs.syncDirectory('nowhere'))).toBe('ENOENT')
  })
})

describe('the error of the seam', () => {
  const of = (code: string) => Object.assign(new Error(code), { code })

  it('is STORAGE_FULL where room helps, which may be tried again, and STORAGE_ERROR for all else', () => {
    for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG']) {
      expect(storageError('write', 'a', of(code))).toMatchObject({ code: 'STORAGE_FULL', retriable: true })
    }
    for (const code of ['EIO', 'EROFS', 'EACCES', 'EMFILE', 'ESOMETHING']) {
      expect(storageError('write', 'a', of(code))).toMatchObject({ code: 'STORAGE_ERROR', retriable: false })
    }
  })

  it('names operation, path and code, says what helps, and keeps its cause', () => {
    const cause = of('EMFILE')
    const error = storageError('makeDirectory', 'logs/x', cause)
    expect(error.message).toBe(
      'cannot make the directory logs/x: EMFILE; raise the limit of open files of the process (ulimit -n)',
    )
    expect(error.cause).toBe(cause)
    expect(storageError('list', '', undefined).message).toBe('cannot list .: the file system failed')
    expect(storageError('list', '', of('EODD')).message).toBe('cannot list .: EODD')
  })

  it('is told apart by its cause, as the system’s own is by its code', () => {
    expect(isMissing(storageError('open', 'a', of('ENOENT')))).toBe(true)
    expect(isMissing(of('ENOENT'))).toBe(true)
    expect(isMissing(of('EIO'))).toBe(false)
    expect(isOutOfHandles(storageError('open', 'a', of('EMFILE')))).toBe(true)
    expect(isOutOfHandles(of('ENFILE'))).toBe(true)
    for (const other of [of('EIO'), undefined, null, 'EMFILE', { code: 5 }]) {
      expect(isOutOfHandles(other)).toBe(false)
    }
  })
})

describe('paths', () => {
  it('have a parent, the data directory at the least', () => {
    expect([parentOf('a/b/c'), parentOf('a'), parentOf('')]).toEqual(['a/b', '', ''])
  })

  it('take a name in no other way than as one part', () => {
    expect(encodeName('aZ09_-')).toBe('aZ09_-')
    for (const bad of ['.', '..', 'a/b', 'a\\b', 'a\0', 'CON:', 'é', '%', ' ', '*']) {
      expect(encodeName(bad)).toMatch(/^[\w%-]+$/)
    }
    expect(encodeName('a.b/é')).toBe('a%2Eb%2F%C3%A9')
    const names = ['a%2E', 'a.', 'a%252E']
    expect(new Set(names.map(encodeName)).size).toBe(3)
  })

  it('count the bytes of pieces', () => {
    expect(totalBytes([new Uint8Array(3), new Uint8Array(0), new Uint8Array(4)])).toBe(7)
  })
})
