/** A broker on a directory of the real disk, through the front door. */
import { cp, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
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
