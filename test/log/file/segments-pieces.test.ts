import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Segments } from '../../../src/log/file/segments.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { batchAt, joined } from './batches.ts'
import { append, hex, nextOf, openSegments, readAll } from './segments-kit.ts'

const LIST = Array.from({ length: 12 }, (_, i) => batchAt(i * 2, { deltas: 2 }))

/** Cuts the list after each of `borders`, into pieces of whole batches. */
function pieces(borders: readonly number[]): Uint8Array[] {
  const cuts = [0, ...borders, LIST.length]
  return cuts.slice(1).map((to, i) => joined(LIST.slice(cuts[i], to)))
}

function appendPieces(segments: Segments, list: readonly Uint8Array[]): Promise<void> {
  return segments.append(list, { base: 0, next: nextOf(LIST.at(-1) as Uint8Array) })
}

const anyBorders = fc
  .uniqueArray(fc.integer({ min: 0, max: LIST.length }))
  .map((all) => all.sort((a, b) => a - b))

describe('pieces that are appended in a row', () => {
  it('make the files that they would make in one, wherever segments end', async () => {
    await fc.assert(
      fc.asyncProperty(anyBorders, fc.integer({ min: 1, max: 1200 }), async (borders, segmentBytes) => {
        const [one, other] = [new SimFs(), new SimFs()]
        await append(await openSegments(one, [], { segmentBytes }), ...LIST)
        const segments = await openSegments(other, [], { segmentBytes })
        await appendPieces(segments, pieces(borders))
        expect(other.files()).toEqual(one.files())
        for (const path of one.files()) expect(hex(other.bytesOf(path))).toBe(hex(one.bytesOf(path)))
        expect(await readAll(segments, 0)).toEqual(LIST.map(hex))
      }),
    )
  })

  it('may be given again after a failure anywhere in them', async () => {
    const list = pieces([1, 3, 8])
    let operations = 1
    let failures = 0
    for (let at = 1; at <= operations; at++) {
      const fs = new SimFs()
      const segments = await openSegments(fs, [], { segmentBytes: 300 })
      operations = 0
      fs.onOperation = () => (++operations === at ? { fail: 'ENOSPC' } : undefined)
      await appendPieces(segments, list).catch(() => {
        failures++
        return appendPieces(segments, list)
      })
      fs.onOperation = () => undefined
      expect(await readAll(segments, 0)).toEqual(LIST.map(hex))
    }
    expect(failures).toBeGreaterThan(10)
  })

  it('are written together', async () => {
    const fs = new SimFs()
    const segments = await openSegments(fs)
    const writes: string[] = []
    fs.onOperation = (operation, path) => {
      if (operation === 'write') writes.push(path)
      return undefined
    }
    await appendPieces(segments, pieces([1, 3, 8]))
    expect(writes).toHaveLength(1)
  })
})
