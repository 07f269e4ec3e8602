/** The moment at which a segment takes the place of others: who waits for it, and who is in the middle of a read. */
import { describe, expect, it } from 'vitest'
import { Behind } from '../../../src/log/file/behind.ts'
import type { StoredSegment } from '../../../src/log/file/checkpoint.ts'
import type { Committer } from '../../../src/log/file/committer.ts'
import { Reading } from '../../../src/log/file/reading.ts'
import type { Resident } from '../../../src/log/file/resident.ts'
import { Slice } from '../../../src/model/batch.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { watch } from '../../support/world.ts'
import { batchAt, markerAt, transactional } from './batches.ts'
import { Bench } from './compaction-bench.ts'
import { DAY_MS } from './compaction-kit.ts'
import { append, hex, openSegments, split } from './segments-kit.ts'

describe('a change of segments', () => {
  async function behind(): Promise<{ behind: Behind; marks: { high: number }; changes: string[] }> {
    const segments = await openSegments(new SimFs())
    const resident = {
      unwritten: (from: number) => ({ pieces: [batchAt(from, { deltas: 1 })], base: from, next: from + 1 }),
      written: () => {},
    } as unknown as Resident
    const marks = { start: 0, stable: 0, high: 0, end: 0, epoch: 0 }
    return { behind: new Behind(segments, resident, marks, {} as Committer), marks, changes: [] }
  }

  it('is made when everything committed is written', async () => {
    const { behind: log, marks, changes } = await behind()
    marks.high = 3
    const made = log.whenWritten(() => void changes.push(`at ${log.written}`))
    expect(changes).toEqual([])
    await log.write()
    expect([changes, await made]).toEqual([['at 3'], true])
    await log.write()
    expect(changes).toHaveLength(1)
  })

  it('waits while a checkpoint waits for what is not committed yet', async () => {
    const { behind: log, marks, changes } = await behind()
    marks.high = 1
    const segments = log.fence(2)
    const told = segments.then((list: readonly StoredSegment[]) => changes.push(`fence ${list[0]?.next}`))
    const made = log.whenWritten(() => void changes.push('change'))
    await log.write()
    expect(changes).toEqual([])
    marks.high = 3
    await log.write()
    await told
    expect([changes, await made]).toEqual([['fence 2', 'change'], true])
  })

  it('is dropped with the log, and when nobody waits for it any more', async () => {
    const { behind: log, changes } = await behind()
    const change = (): void => void changes.push('change')
    const first = log.whenWritten(change)
    log.dropChange()
    expect(await first).toBe(false)
    const second = watch(log.whenWritten(change))
    log.end()
    await log.write()
    expect([second.state, second.value, changes]).toEqual(['resolved', false, []])
  })
})

describe('who reads while it happens', () => {
  /** Reads of segments that have what they wanted, and do not answer before they may. */
  function held(bench: Bench): () => void {
    const { segments } = bench
    const read = segments.read.bind(segments)
    let letGo = (): void => {}
    const gate = new Promise<void>((resolve) => {
      letGo = resolve
    })
    segments.read = async (...what) => {
      const found = await read(...what)
      await gate
      return found
    }
    return () => {
      segments.read = read
      letGo()
    }
  }

  const batches = [
    batchAt(0, { deltas: 2, producer: transactional(1) }),
    markerAt(2, 1, false),
    batchAt(3, { deltas: 1, producer: { ...transactional(1), sequence: 2 } }),
    markerAt(4, 1, true),
    batchAt(5, { deltas: 1 }),
  ]

  it('is answered from what is there afterwards', async () => {
    const bench = await Bench.of(batches)
    const letGo = held(bench)
    const chunk = bench.resident.chunkAt(0)
    await bench.compact()
    letGo()
    const { base, next } = await chunk
    expect([base, next > 2]).toEqual([0, true])
    const into = new Slice()
    bench.resident.decode(await chunk, 0, next, 1_000_000, 'uncommitted')
    expect((await chunk).peek(0, next, 9, 'uncommitted', into)).toBe('hit')
    expect([into.columns.offsetAt(into.row), into.count]).toEqual([3, 1])
  })

  it('is told of aborted transactions as they are in the bytes', async () => {
    const bench = await Bench.of(batches)
    await bench.compact()
    const reading = new Reading('t', bench.marks, bench.resident, bench.state)
    const before = await reading.read(0, 10_000, 'committed')
    expect(before.aborted).toEqual([{ producerId: 1, firstOffset: 0 }])
    const again = await Bench.of(batches)
    // What is aborted is in memory, and what follows is read while all of that goes.
    await again.resident.chunkAt(0)
    const letGo = held(again)
    const late = new Reading('t', again.marks, again.resident, again.state)
    const read = late.read(0, 10_000, 'committed')
    await again.compact()
    await again.compact(DAY_MS)
    letGo()
    const { bytes, aborted } = await read
    expect([aborted, split(bytes)]).toEqual([[], batches.slice(2).map(hex)])
  })

  /** Compacts, and removes what was replaced, once the bench does its operation `at` from now. */
  function compactAt(bench: Bench, at: number): () => Promise<void> | undefined {
    const began = bench.fs.operations
    let done: Promise<void> | undefined
    bench.fs.onOperation = () => {
      if (bench.fs.operations - began === at) {
        done ??= bench.compact().then(() => bench.segments.removeReplaced(bench.segments.replaced))
      }
      return undefined
    }
    return () => done
  }

  it('reads on in the old files, and in the new ones when those are gone', async () => {
    const known = batches.map(hex)
    for (let at = 1; at < 30; at++) {
      const bench = await Bench.of(batches)
      const done = compactAt(bench, at)
      for (let offset = 0; offset < 5; offset++) {
        const { bytes, next } = await bench.segments.read(offset, 1)
        expect(next).toBeGreaterThan(offset)
        // The marker has a horizon afterwards.
        for (const batch of split(bytes)) if (!known.includes(batch)) expect(batch).toContain(hex(headOf(2)))
      }
      await done()
    }
  })

  it('looks up times in either', async () => {
    for (let at = 1; at < 30; at++) {
      const bench = await Bench.of(batches)
      const done = compactAt(bench, at)
      for (let i = 0; i < 5; i++) expect(await bench.segments.seekTime(0)).toBeLessThan(5)
      await done()
    }
  })

  /** How a batch at this offset begins. */
  function headOf(base: number): Uint8Array {
    return new Uint8Array([0, 0, 0, 0, 0, 0, 0, base])
  }

  it('finds appended batches behind it as before', async () => {
    const bench = await Bench.of(batches)
    await bench.compact()
    await append(bench.segments, batchAt(6, { deltas: 1 }))
    expect(split((await bench.segments.read(6, 1)).bytes)).toEqual([hex(batchAt(6, { deltas: 1 }))])
  })
})
