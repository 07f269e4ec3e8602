/** Which offsets sound batches have, whose surroundings are damaged. */
import { describe, expect, it } from 'vitest'
import { type Block, SoundBatches } from '../../../src/log/file/sound-batches.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { writeInt64 } from '../../../src/log/format/integers.ts'
import { batchAt, joined } from './batches.ts'

const pair = (base: number): Uint8Array => batchAt(base, { deltas: 2 })
const size = pair(0).length

/** The batch with an offset that is not its own: no checksum covers it. */
function misplaced(base: number, said: number): Uint8Array {
  const batch = pair(base)
  writeInt64(batch, 0, said)
  return batch
}

function damaged(base: number): Uint8Array {
  return pair(base).fill(0x7f, 61)
}

function found(batches: readonly Uint8Array[], ...blocks: readonly Partial<Block>[]): SoundBatches {
  const bytes = joined(batches)
  const sound = new SoundBatches(bytes, crc32c, () => undefined)
  for (const block of blocks) {
    sound.take({ from: 0, to: bytes.length, base: 0, next: 6, exact: true, gaps: false, ...block })
  }
  return sound
}

describe('a batch with the offset of another one', () => {
  it('gets its own where nothing is missing between what surrounds it', () => {
    const { batches, lost } = found([pair(0), misplaced(2, 77), pair(4)], {})
    expect([batches, lost]).toEqual([[pair(0), pair(2), pair(4)], []])
  })

  it('gets its own as the last one, where it is known which offset follows', () => {
    const { batches, lost } = found([pair(0), pair(2), misplaced(4, 77)], {})
    expect([batches, lost]).toEqual([[pair(0), pair(2), pair(4)], []])
    const unknown = found([pair(0), pair(2), misplaced(4, 77)], { exact: false })
    expect([unknown.batches, unknown.lost]).toEqual([
      [pair(0), pair(2)],
      [{ position: 2 * size, from: 4, to: 6 }],
    ])
  })

  it('is lost where there is no telling', () => {
    const { batches, lost } = found([pair(0), misplaced(2, 77), pair(5)], { next: 7 })
    expect(batches).toEqual([pair(0), pair(5)])
    expect(lost).toEqual([{ position: size, from: 2, to: 5 }])
  })

  it('is lost where it would reach beyond its block', () => {
    const { batches, lost } = found([pair(0)], { next: 1 })
    expect([batches, lost]).toEqual([[], [{ position: 0, from: 0, to: 1 }]])
  })
})

describe('where offsets may be missing', () => {
  const gaps = { exact: false, gaps: true, next: 10 }

  it('batches have the offsets they say, as long as they grow and stay below what follows', () => {
    const { batches, lost } = found([pair(0), pair(5), pair(8)], gaps)
    expect([batches, lost]).toEqual([[pair(0), pair(5), pair(8)], []])
  })

  it.each([1, 7, 77])('one that says %d between 0 and 8 is lost', (said) => {
    const { batches, lost } = found([pair(0), misplaced(5, said), pair(8)], gaps)
    expect([batches, lost]).toEqual([[pair(0), pair(8)], [{ position: size, from: 2, to: 8 }]])
  })
})

it('what is lost at the end of a block and at the beginning of the next one is one range', () => {
  const { batches, lost } = found(
    [pair(0), damaged(2), damaged(4), pair(6)],
    { to: 2 * size, next: 4 },
    { from: 2 * size, base: 4, next: 8 },
  )
  expect([batches, lost]).toEqual([[pair(0), pair(6)], [{ position: size, from: 2, to: 6 }]])
})
