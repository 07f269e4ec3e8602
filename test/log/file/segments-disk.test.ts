/** Segments on the disk itself, with handles that are few. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { FilePool } from '../../../src/log/file/file-pool.ts'
import { NodeFileSystem } from '../../../src/log/file/fs-node.ts'
import { Segments } from '../../../src/log/file/segments.ts'
import { batchAt } from './batches.ts'
import { append, hex, logPath, optionsOf, readAll, saveIndex, verify } from './segments-kit.ts'

const root = mkdtempSync(join(tmpdir(), 'odradek-segments-'))

afterAll(() => rmSync(root, { recursive: true }))

it('segments are on the disk what they are on a simulated one', async () => {
  const fs = await NodeFileSystem.at(root)
  const list = Array.from({ length: 60 }, (_, i) =>
    batchAt(i * 3, { deltas: 3, value: () => 'v'.repeat(4000) }),
  )
  const open = (): typeof options => ({ ...options, pool: new FilePool(fs, 2) })
  const options = { ...optionsOf(fs), segmentBytes: 100_000 }
  const first = await Segments.restore(open(), [])
  for (const batch of list.slice(0, 40)) await append(first, batch)
  await first.sync()
  const stored = first.stored()
  await append(first, list[40] as Uint8Array)
  await saveIndex(first)

  const segments = await Segments.restore(open(), stored)
  expect(segments.next).toBe(120)
  await append(segments, ...list.slice(40))
  await segments.sync()
  const reads = await Promise.all([0, 17, 60, 100, 179].map((offset) => readAll(segments, offset, 20_000)))
  expect(reads).toEqual([0, 5, 20, 33, 59].map((from) => list.slice(from).map(hex)))
  expect(await verify(fs, segments.stored())).toEqual([])
  expect(statSync(join(root, logPath(0))).mode & 0o777).toBe(0o600)
  await segments.removeBelow(100)
  const start = segments.list[0]?.base ?? 0
  expect(start).toBeGreaterThan(0)
  expect(await readAll(segments, start)).toEqual(list.slice(start / 3).map(hex))
  await Segments.remove(open())
  expect(await fs.exists('logs/t-0')).toBe(false)
})
