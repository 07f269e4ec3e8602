/** A broker on a directory of the real disk, through the front door. */
import { cp, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openBroker } from '../../src/index.ts'
import type { Logger } from '../../src/model/views.ts'
import { codeOf, upTo } from '../support/world.ts'

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

let root = ''

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'odradek-open-'))
})

afterEach(() => rm(root, { recursive: true }))

describe('openBroker on a directory', () => {
  it('makes it, with its parents, for nobody else to look into', async () => {
    const path = join(root, 'deep', 'data')
    const broker = await openBroker(`file:${path}`)
    await (await broker.createTopic('orders')).publish('one')
    await broker.close()
    const directories = [path, join(path, 'journal'), join(path, 'logs')]
    for (const each of directories) expect((await stat(each)).mode & 0o777).toBe(0o700)
    for (const each of ['checkpoint', 'journal/a', 'journal/b']) {
      expect((await stat(join(path, each))).mode & 0o777).toBe(0o600)
    }
  })

  it('is refused where somebody else keeps things, which stay as they are', async () => {
    await mkdir(join(root, 'src'))
    await writeFile(join(root, 'package.json'), '{}')
    const opening = openBroker(`file:${root}`)
    await expect(opening).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: `${root} is not empty and no data directory of Odradek: it holds package.json and 1 more; name one of its own, such as ${join(root, 'odradek')}`,
    })
    expect((await readdir(root)).sort()).toEqual(['package.json', 'src'])
    // An empty directory with a name of ours says nothing.
    await mkdir(join(root, 'logs'))
    expect(await codeOf(openBroker(`file:${root}`))).toBe('INVALID_ARGUMENT')
    await rm(join(root, 'src'), { recursive: true })
    expect(await codeOf(openBroker(`file:${root}`))).toBe('INVALID_ARGUMENT')
    await rm(join(root, 'package.json'))
    await (await openBroker(`file:${root}`)).close()
  })

  it.each([
    ['of a new disk', ['lost+found/', '.Trash-0/', '.gitkeep', 'Thumbs.db']],
    [
      'that a broker has begun',
      ['lock.0a1b2c3d.sock', 'lock.0a1b2c3d.new', 'journal/', 'logs/', 'torn/', 'checkpoint.new'],
    ],
    ['that a broker has begun, with things that came later', ['lock.1', 'notes.txt']],
  ])('takes a directory %s', async (_, names) => {
    for (const name of names) {
      if (name.endsWith('/')) await mkdir(join(root, name))
      else await writeFile(join(root, name), '')
    }
    const broker = await openBroker(`file:${root}`)
    await broker.close()
    await writeFile(join(root, 'notes.txt'), 'ours')
    await (await openBroker(`file:${root}`)).close()
  })

  it('takes a path, or a URL with an empty host', async () => {
    const path = join(root, 'with space')
    const broker = await openBroker(pathToFileURL(path).href)
    await broker.createTopic('orders')
    await broker.close()
    const again = await openBroker(`file:${path}`)
    expect(again.listTopics()).toEqual(['orders'])
    await again.close()
  })

  it('finds topics, records and places again, and goes on where readers were', async () => {
    const url = `file:${root}/data`
    const seen: unknown[] = []
    const first = await openBroker(url)
    const orders = await first.createTopic<{ n: number }>('orders', { partitions: 2 })
    await Promise.all(upTo(20).map((n) => orders.publish({ n }, { key: `k${n}`, headers: { n: String(n) } })))
    const reader = await orders.subscribe((d) => void seen.push(d.value.n), { id: 'alice', from: 'earliest' })
    await reader.drained()
    await first.close()
    expect([...seen].sort((a, b) => Number(a) - Number(b))).toEqual(upTo(20))

    const second = await openBroker(url)
    const again: unknown[] = []
    await second.subscribe('orders', (d) => void again.push((d.value as { n: number }).n), { id: 'alice' })
    await second.publish('orders', { n: 20 })
    await second.idle()
    expect(again).toEqual([20])
    const records = [...(await second.read('orders', 0)), ...(await second.read('orders', 1))]
    const values = records.map(({ value, headers }) => [(value as { n: number }).n, headers.get('n')])
    expect(values.filter(([n]) => n !== 20).sort((a, b) => Number(a[0]) - Number(b[0]))).toEqual(
      upTo(20).map((n) => [n, String(n)]),
    )
    await second.close()
  })

  it('belongs to one broker at a time', async () => {
    const url = `file:${root}/data`
    const broker = await openBroker(url)
    expect(await codeOf(openBroker(url))).toBe('DATA_LOCKED')
    await broker.close()
    await (await openBroker(url)).close()
  })

  it('is let go of when what is in it cannot be opened', async () => {
    const path = join(root, 'data')
    await (await openBroker(`file:${path}`)).close()
    await writeFile(join(path, 'checkpoint'), 'nonsense')
    expect(await codeOf(openBroker(`file:${path}`))).toBe('CORRUPT_LOG')
    expect(await codeOf(openBroker(`file:${path}`))).toBe('CORRUPT_LOG')
  })

  it('says what recovery has left out, through the logger', async () => {
    const path = join(root, 'data')
    const warned: string[] = []
    const logger: Logger = { ...QUIET, warn: (_, message) => void warned.push(message) }
    await using broker = await openBroker(`file:${path}`)
    await (await broker.createTopic('orders')).publish('one')
    // Copied while it is open: after a close the journal is not looked at.
    const killed = join(root, 'killed')
    await cp(path, killed, { recursive: true, filter: (name) => !name.includes('lock') })
    await writeFile(join(killed, 'journal', 'a'), 'torn')
    await (await openBroker(`file:${killed}`, { logger })).close()
    expect(warned).toEqual([expect.stringContaining('journal/a')])
    expect(await readdir(join(killed, 'torn'))).toHaveLength(1)
  })

  it('checks its options before it touches anything', async () => {
    const path = join(root, 'data')
    for (const options of [
      { durability: 'maybe' },
      { flushMs: 0 },
      { salvage: 'yes' },
      { journalBytes: 1.5 },
      { segmentBytes: -1 },
      { cacheBytes: '64' },
    ]) {
      expect(await codeOf(openBroker(`file:${path}`, options as never))).toBe('INVALID_ARGUMENT')
    }
    for (const url of ['file:', 'file://elsewhere/data']) {
      expect(await codeOf(openBroker(url))).toBe('INVALID_ARGUMENT')
    }
    expect(await readdir(root)).toEqual([])
  })

  it.each([
    [{ journalBytes: 64 }, 'journalBytes is in bytes, 65536 at least; got 64'],
    [{ journalBytes: 65_535 }, 'journalBytes is in bytes, 65536 at least; got 65535'],
    [{ journalBytes: 2 ** 30 + 1 }, 'journalBytes is in bytes, 1073741824 at most; got 1073741825'],
    [{ segmentBytes: 64 }, 'segmentBytes is in bytes, 1024 at least; got 64'],
    [{ cacheBytes: 64 }, 'cacheBytes is in bytes, 1024 at least; got 64'],
  ])('says which size makes no sense, and which would: %o', async (options, message) => {
    const opening = openBroker(`file:${root}/data`, options)
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message })
    expect(await readdir(root)).toEqual([])
  })

  it('takes the smallest sizes there may be, and what fits them', async () => {
    const least = { journalBytes: 65_536, segmentBytes: 1_024, cacheBytes: 1_024, logger: QUIET }
    const broker = await openBroker(`file:${root}/data`, least)
    const topic = await broker.createTopic('orders')
    for (let i = 0; i < 40; i++) await topic.publish(`${i}`.repeat(6_000))
    const seen: number[] = []
    for (const id of ['a', 'b']) {
      const take = ({ offset }: { readonly offset: number }): void => void seen.push(offset)
      await topic.subscribe(take, { id, from: 'earliest' })
    }
    await broker.idle()
    expect(seen.length).toBe(80)
    await expect(topic.publish('x'.repeat(20_000))).rejects.toMatchObject({
      code: 'TOO_LARGE',
      message: expect.stringMatching(
        /^"orders" partition 0: 1 record of 200\d\d bytes at once; the engine takes 16320 bytes .*`journalBytes` \(65536\)$/,
      ),
    })
    await broker.createTopic('pairs', { partitions: 2 })
    const transaction = broker.transaction((tx) => {
      for (const partition of [0, 0, 1]) tx.publish('pairs', 'x'.repeat(6_000), { partition })
    })
    await expect(transaction).rejects.toMatchObject({
      code: 'TOO_LARGE',
      message: expect.stringMatching(
        /^"pairs" partition 0 and "pairs" partition 1: 3 records of 18\d{3} bytes at once; the engine takes 16320/,
      ),
    })
    await broker.close()
  })

  it('lets go of it when the options of the broker are wrong', async () => {
    const url = `file:${root}/data`
    expect(await codeOf(openBroker(url, { loger: console } as never))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(openBroker(url, 'quick' as never))).toBe('INVALID_ARGUMENT')
    await (await openBroker(url)).close()
  })

  it('options of files are refused where there are none', async () => {
    expect(await codeOf(openBroker('memory:', { durability: 'os' }))).toBe('INVALID_ARGUMENT')
  })
})
