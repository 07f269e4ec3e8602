import { describe, expect, it } from 'vitest'
import { ProducerIds } from '../../src/coordinator/producer-ids.ts'
import type { Meta } from '../../src/log/contract.ts'
import { MemoryMeta } from '../../src/log/memory/memory-meta.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { fileDisk } from '../support/disks.ts'

async function take(ids: ProducerIds, count: number): Promise<number[]> {
  const taken: number[] = []
  for (let i = 0; i < count; i++) taken.push(await ids.next())
  return taken
}

describe('producer ids', () => {
  it('count up from 1, over the end of a block', async () => {
    const ids = new ProducerIds(new MemoryMeta())
    expect(await take(ids, 2_500)).toEqual(Array.from({ length: 2_500 }, (_, i) => i + 1))
  })

  it('are each given out once, however many ask at the same time', async () => {
    const ids = new ProducerIds(new MemoryMeta())
    const given = await Promise.all(Array.from({ length: 2_500 }, () => ids.next()))
    expect(new Set(given).size).toBe(2_500)
  })

  it('are stored by the block, not one by one', async () => {
    const meta = new MemoryMeta()
    let puts = 0
    const ids = new ProducerIds(
      watched(meta, async () => {
        puts++
      }),
    )
    await take(ids, 1_001)
    expect(puts).toBe(2)
  })

  it('are not given out before their block is stored', async () => {
    let stored: () => void = () => {}
    const wait = new Promise<void>((resolve) => {
      stored = resolve
    })
    const ids = new ProducerIds(watched(new MemoryMeta(), () => wait))
    let given: number | undefined
    const asked = ids.next().then((id) => {
      given = id
    })
    await turns()
    expect(given).toBeUndefined()
    stored()
    await asked
    expect(given).toBe(1)
  })

  it('are to be had again after the store has failed', async () => {
    let fails = true
    const ids = new ProducerIds(
      watched(new MemoryMeta(), async () => {
        if (fails) throw new Error('no')
      }),
    )
    await expect(Promise.all([ids.next(), ids.next()])).rejects.toThrow('no')
    fails = false
    expect(await take(ids, 2)).toEqual([1, 2])
  })

  it('do not come again after a crash', async () => {
    const disk = fileDisk()
    const seen = new Set<number>()
    for (let life = 0; life < 4; life++) {
      const engine = await disk.open(new ManualClock())
      const ids = new ProducerIds(engine.meta)
      for (const id of await take(ids, life * 700 + 1)) {
        expect(seen.has(id)).toBe(false)
        seen.add(id)
      }
      engine.crash()
    }
    expect(seen.size).toBe(1 + 701 + 1_401 + 2_101)
  })
})

function watched(meta: Meta, before: () => Promise<void>): Meta {
  return {
    get: (key) => meta.get(key),
    scan: (prefix) => meta.scan(prefix),
    put: async (changes) => {
      await before()
      await meta.put(changes)
    },
  }
}

async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}
