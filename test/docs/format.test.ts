/**
 * docs/format.md is enough to read a data directory: the program beside this file, written after it in another language, finds
 * every record that the broker has. Skipped where there is no python3.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cp, readdir, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { type Broker, openBroker } from '../../src/index.ts'
import type { Engine, PartitionLog } from '../../src/log/contract.ts'
import { fileEngine } from '../../src/log/file/file-engine.ts'
import { NodeFileSystem } from '../../src/log/file/fs-node.ts'
import { readDirectory } from '../../src/log/file/inspect.ts'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { readInt16, writeInt16, writeInt32 } from '../../src/log/format/integers.ts'
import { ATTRIBUTES_AT, CRC_AT, SIZE_AT } from '../../src/log/format/layout.ts'
import { keyBytes, type LogRecord } from '../../src/model/record.ts'
import { JSON_TYPE, TEXT_TYPE } from '../../src/model/value-codec.ts'
import { keeping, markerOf, producerOf, specOf, T0, wireBatchOf } from '../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { folder, forgetFolders } from '../cli/kit.ts'
import { proseOf } from './markdown.ts'

const program = join(import.meta.dirname, 'read_directory.py')
const hasPython = spawnSync('python3', ['--version']).status === 0
if (!hasPython) console.info('skipped: no python3, so nobody reads a data directory after docs/format.md')

afterAll(forgetFolders)

interface Line {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestamp: number
  readonly key: string | null
  readonly value: string | null
  readonly headers: readonly (readonly [string, string | null])[]
  readonly transaction: 'committed' | 'aborted' | 'open' | null
}

function linesOf(path: string): Line[] {
  const text = execFileSync('python3', [program, path], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)
}

function bytesOf(hex: string | null): Uint8Array | null {
  return hex === null ? null : new Uint8Array(Buffer.from(hex, 'hex'))
}

/** The record that a line tells of, after what the page says of values. */
function understood({ offset, timestamp, key, value, headers }: Line): unknown {
  const isType = ([name]: readonly [string, string | null]): boolean => name === 'content-type'
  const untyped = headers.some(([name]) => name === '__odradek.untyped')
  const type = untyped ? undefined : headers.findLast(isType)?.[1]
  const text = value === null ? null : Buffer.from(value, 'hex')
  const values: Readonly<Record<string, () => unknown>> = {
    [JSON_TYPE]: () => JSON.parse(String(text)),
    [TEXT_TYPE]: () => String(text),
  }
  const named = headers.filter((header) => (untyped ? true : header !== headers.findLast(isType)))
  return {
    offset,
    timestamp,
    key: bytesOf(key),
    value:
      text && (values[String(bytesOf(type ?? null) && Buffer.from(type ?? '', 'hex'))]?.() ?? bytesOf(value)),
    headers: named
      .filter(([name]) => !name.startsWith('__odradek.'))
      .map(([name, header]) => [name, bytesOf(header)]),
  }
}

function plain({ offset, timestamp, key, value, headers }: LogRecord): unknown {
  return {
    offset,
    timestamp,
    key: key === null ? null : new Uint8Array(keyBytes(key)),
    value,
    headers: [...headers]
      .filter(([name]) => !name.startsWith('__odradek.'))
      .map(([name, header]) => [name, header === null ? null : new Uint8Array(keyBytes(header))]),
  }
}

type Content = Record<string, unknown[]>

async function contentOf(broker: Broker): Promise<Content> {
  const content: Content = {}
  for (const topic of broker.listTopics()) {
    for (const { partition } of broker.describe(topic).partitions) {
      const records = await broker.read(topic, partition)
      if (records.length > 0) content[`${topic}/${partition}`] = records.map(plain)
    }
  }
  return content
}

function contentRead(path: string): Content {
  const content: Content = {}
  for (const line of linesOf(path)) {
    const name = `${line.topic}/${line.partition}`
    content[name] = [...(content[name] ?? []), understood(line)]
  }
  return content
}

const OPTIONS = { segmentBytes: 4_096, journalBytes: 64 * 1024 } as const

async function publishAllSorts(broker: Broker): Promise<void> {
  const orders = await broker.createTopic('orders', {
    partitions: 3,
    retention: { records: 40 },
    dedupe: true,
  })
  const sorts: [unknown, Parameters<typeof orders.publish>[1]?][] = [
    [
      { id: 1, nested: [true, null, 'é'] },
      { key: 'anna', headers: { source: 'web', flag: null } },
    ],
    ['text', { key: Uint8Array.of(0xff, 0), headers: { 'content-type': 'mine' } }],
    [Uint8Array.of(0, 1, 2, 255), { headers: { 'content-type': 'image/png' } }],
    [null, { key: '' }],
    ['', { id: 'once' }],
    ['x'.repeat(3_000)],
  ]
  for (let round = 0; round < 40; round++)
    for (const [value, options] of sorts) await orders.publish(value, options)
  await (await broker.createTopic('gone')).publish('never seen')
  await broker.deleteTopic('gone')
  await broker.createTopic('empty')
  await broker.transaction(async (tx) => {
    tx.publish('orders', 'both', { partition: 0 })
    tx.publish('orders', 'or none', { partition: 1 })
  })
  await broker.idle()
}

describe.skipIf(!hasPython)('a reader that knows docs/format.md alone', () => {
  it('finds what a broker has that is closed, and what one has that was killed, journal and all', async () => {
    const path = await folder()
    const first = await openBroker(`file:${path}`, OPTIONS)
    await publishAllSorts(first)
    const content = await contentOf(first)
    await first.close()
    expect(contentRead(path)).toEqual(content)
    expect(Object.values(content).flat().length).toBeGreaterThan(60)

    const copy = await folder()
    const second = await openBroker(`file:${path}`, OPTIONS)
    await publishAllSorts(second)
    const more = await contentOf(second)
    await cp(path, copy, { recursive: true, filter: (source) => !source.endsWith('.sock') })
    await second.close()
    const { report } = await readDirectory({ fs: new NodeFileSystem(copy), crc32c })
    expect([report.clean, report.recovery.outcome]).toEqual([false, 'recover'])
    expect(contentRead(copy)).toEqual(more)
    expect(more).not.toEqual(content)
  })

  it('finds what compaction has left, in segments of later generations', async () => {
    const path = await folder()
    const broker = await openBroker(`file:${path}`, OPTIONS)
    const table = await broker.createTopic<{ round: number }>('table', { cleanup: 'compact' })
    // A new segment is what counts once a checkpoint names it: then the one it replaces is gone.
    const isCompacted = async (): Promise<boolean> => {
      const names = await readdir(path, { recursive: true })
      return names.some((name) => {
        const replaced = name.replace(/-\d+\.log$/, '.log')
        return replaced !== name && !names.includes(replaced)
      })
    }
    for (let round = 0; round < 50_000 && !(round % 50 === 0 && (await isCompacted())); round++) {
      await table.publish({ round }, { key: `k${round % 7}` })
    }
    const before = (await contentOf(broker))['table/0'] as { readonly offset: number }[]
    await broker.close()
    expect(await isCompacted()).toBe(true)
    // Compaction goes on until the broker is closed: it takes older records, and never the newest of a key.
    const found = contentRead(path)['table/0'] as { readonly offset: number }[]
    const offsets = new Set(found.map(({ offset }) => offset))
    expect(found).toEqual(before.filter(({ offset }) => offsets.has(offset)))
    expect(found.slice(-7)).toEqual(before.slice(-7))
  })

  it('finds batches that came over a protocol: compressed ones, and transactions however they ended', async () => {
    const path = await folder()
    const engine = await open(path)
    const log = await engine.openLog({ ...specOf(keeping({}), 'topic%1'), topic: 'wire' })
    await engine.meta.put([['topic/topic%1', { name: 'wire' }]])
    const rows = (...values: string[]) => values.map((value, i) => ({ value, timestamp: T0 + i }))
    append(log, gzipped(wireBatchOf(rows('a', 'b'))))
    append(log, wireBatchOf(rows('c'), producerOf(1, 0, { transactional: true })))
    append(log, wireBatchOf(rows('d'), producerOf(2, 0, { transactional: true })))
    append(log, markerOf(producerOf(1, 0, { transactional: true }), true))
    append(log, markerOf(producerOf(2, 0, { transactional: true }), false))
    append(log, wireBatchOf(rows('e'), producerOf(1, 1, { transactional: true })))
    append(log, wireBatchOf(rows('f')))
    const expected = [
      [0, 'a', null],
      [1, 'b', null],
      [2, 'c', 'committed'],
      [3, 'd', 'aborted'],
      [6, 'e', 'open'],
      [7, 'f', null],
    ]
    const found = (): unknown[] =>
      linesOf(path).map(({ topic, offset, value, transaction }) => {
        expect(topic).toBe('wire')
        return [offset, Buffer.from(value ?? '', 'hex').toString(), transaction]
      })
    await log.flush()
    expect(found()).toEqual(expected)
    await engine.close()
    expect(found()).toEqual(expected)
    const again = await open(path)
    const log2 = await again.openLog({ ...specOf(keeping({}), 'topic%1'), topic: 'wire' })
    await log2.trim(3)
    await log2.flush()
    expect(found()).toEqual(expected.slice(3))
    await again.deleteLog('topic%1', 0)
    expect(found()).toEqual([])
    await again.close()
  })

  it('finds what is in front of a torn group', async () => {
    const path = await folder()
    const engine = await open(path)
    const log = await engine.openLog({ ...specOf(keeping({}), 't'), topic: 'jobs' })
    for (let i = 0; i < 20; i++) {
      append(log, wireBatchOf([{ value: i }]))
      await log.flush()
    }
    const copy = await folder()
    await cp(path, copy, { recursive: true })
    await engine.close()
    const { report } = await readDirectory({ fs: new NodeFileSystem(copy), crc32c })
    await truncate(join(copy, 'journal/a'), (report.journal?.sizeBytes as number) - 5)
    expect(linesOf(copy).map(({ offset }) => offset)).toEqual(Array.from({ length: 19 }, (_, i) => i))
  })
})

describe('docs/format.md', () => {
  it('gives checksums to compare with that are right', () => {
    const digits = new TextEncoder().encode('123456789')
    const prose = proseOf('docs/format.md')
    expect(prose).toContain(`\`${crc32c(digits).toString(16)}\``)
    expect(prose).toContain(`from 42 it is \`${crc32c(digits, 42).toString(16)}\``)
  })
})

function open(path: string): Promise<Engine> {
  return fileEngine({ clock: new ManualClock(), fs: new NodeFileSystem(path) }, OPTIONS)
}

function append(log: PartitionLog, batch: Parameters<PartitionLog['tryAppend']>[0]): void {
  const taken = log.tryAppend(batch)
  if (typeof taken === 'string') throw new Error(taken)
}

/** The same batch, its records compressed. */
function gzipped(batch: ReturnType<typeof wireBatchOf>): ReturnType<typeof wireBatchOf> {
  const whole = batch.bytes as Uint8Array
  const bytes = new Uint8Array(Buffer.concat([whole.subarray(0, 61), gzipSync(whole.subarray(61))]))
  writeInt16(bytes, ATTRIBUTES_AT, readInt16(bytes, ATTRIBUTES_AT) | 1)
  writeInt32(bytes, SIZE_AT, bytes.length - 12)
  writeInt32(bytes, CRC_AT, crc32c(bytes.subarray(ATTRIBUTES_AT)))
  return { ...batch, bytes }
}
