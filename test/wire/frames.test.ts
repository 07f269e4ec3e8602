/** Frames out of chunks, wherever the chunks are cut. */
import { describe, expect, it } from 'vitest'
import { BufferPool } from '../../src/log/format/buffer-pool.ts'
import { FrameReader } from '../../src/wire/frames.ts'

const frame = (body: string): Buffer => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length)
  return Buffer.concat([length, Buffer.from(body)])
}

const all = (reader: FrameReader): string[] => {
  const frames: string[] = []
  for (let next = reader.next(); next !== undefined; next = reader.next()) {
    frames.push(Buffer.from(next).toString())
  }
  return frames
}

const BODIES = ['one', '', 'a longer one', 'x']
const STREAM = Buffer.concat(BODIES.map(frame))

describe('a stream of frames', () => {
  it('is the same wherever it is cut in three', () => {
    for (let i = 0; i <= STREAM.length; i++) {
      for (let j = i; j <= STREAM.length; j++) {
        const reader = new FrameReader(() => true)
        const frames: string[] = []
        for (const chunk of [STREAM.subarray(0, i), STREAM.subarray(i, j), STREAM.subarray(j)]) {
          reader.push(chunk)
          frames.push(...all(reader))
        }
        expect(frames, `cut at ${i} and ${j}`).toEqual(BODIES)
      }
    }
  })

  it('is taken a frame at a time, and what is left stays in front of what follows', () => {
    const reader = new FrameReader(() => true)
    reader.push(STREAM.subarray(0, 20))
    expect(Buffer.from(reader.next() ?? []).toString()).toBe('one')
    reader.push(STREAM.subarray(20))
    expect(all(reader)).toEqual(BODIES.slice(1))
  })
})

describe('a frame', () => {
  it('that is whole in its chunk is a view of it, and a copy of its exact size if it is not', () => {
    const reader = new FrameReader(() => true)
    reader.push(STREAM)
    expect(reader.next()?.buffer).toBe(STREAM.buffer)
    const cut = new FrameReader(() => true)
    cut.push(STREAM.subarray(0, 5))
    expect(cut.next()).toBeUndefined()
    cut.push(STREAM.subarray(5))
    expect(cut.next()?.buffer.byteLength).toBe(3)
  })

  it('is copied once, however small the chunks are', () => {
    const big = frame('x'.repeat(1_000_000))
    const reader = new FrameReader(() => true)
    let copied = 0
    const set = Uint8Array.prototype.set
    for (let at = 0; at < big.length; at += 1_000) {
      reader.push(big.subarray(at, at + 1_000))
      Uint8Array.prototype.set = function (from: ArrayLike<number>, to?: number): void {
        copied += from.length
        set.call(this, from, to)
      }
      const next = reader.next()
      Uint8Array.prototype.set = set
      expect(next === undefined).toBe(at + 1_000 < big.length)
    }
    expect(copied).toBe(1_000_000)
  })

  it('that was put together names its buffer, in which another one is put together when it was given back', () => {
    const pool = new BufferPool(2 ** 20)
    const reader = new FrameReader(() => true, pool)
    const next = (body: string, cut: number): Uint8Array => {
      const bytes = frame(body)
      reader.push(bytes.subarray(0, cut))
      const early = reader.next()
      if (cut < bytes.length) expect([early, reader.heldBytes]).toEqual([undefined, 98_304])
      reader.push(bytes.subarray(cut))
      return early ?? (reader.next() as Uint8Array)
    }
    const first = next('a'.repeat(90_000), 50_000)
    const buffer = reader.lastBuffer as Uint8Array
    expect([first.buffer === buffer.buffer, first.length, buffer.length]).toEqual([true, 90_000, 98_304])
    const second = next('b'.repeat(90_000), 10)
    expect(second.buffer).not.toBe(buffer.buffer)
    expect(first.every((byte) => byte === 97)).toBe(true)
    pool.give(buffer)
    const third = next('c'.repeat(85_000), 80_000)
    expect([third.buffer === buffer.buffer, third.length]).toEqual([true, 85_000])
    expect(third.every((byte) => byte === 99)).toBe(true)
    const whole = next('d'.repeat(90_000), 90_004)
    expect([whole.length, reader.lastBuffer]).toEqual([90_000, undefined])
  })

  it('is shown to its owner before anything is made for it, and its room is known until it is whole', () => {
    const asked: number[] = []
    const reader = new FrameReader((sizeBytes) => {
      asked.push(sizeBytes)
      return true
    })
    reader.push(frame('abcdef').subarray(0, 6))
    expect(reader.next()).toBeUndefined()
    expect([asked, reader.heldBytes]).toEqual([[6], 6])
    reader.push(frame('abcdef').subarray(6))
    expect(all(reader)).toEqual(['abcdef'])
    expect([asked, reader.heldBytes]).toEqual([[6], 0])
  })

  it('that has to wait is asked for again, and nothing overtakes it', () => {
    let room = false
    const reader = new FrameReader(() => room)
    reader.push(STREAM)
    expect([reader.next(), reader.held]).toEqual([undefined, true])
    expect([reader.next(), reader.held]).toEqual([undefined, true])
    room = true
    expect(all(reader)).toEqual(BODIES)
    expect(reader.held).toBe(false)
  })

  it('that its owner refuses is an error, negative lengths too', () => {
    const reader = new FrameReader((sizeBytes) => {
      throw new Error(`not ${sizeBytes}`)
    })
    reader.push(Uint8Array.of(255, 255, 255, 254))
    expect(() => reader.next()).toThrow('not -2')
  })

  it('is made of plain bytes, a copy of which is one', () => {
    const reader = new FrameReader(() => true)
    const chunk = Buffer.from([0, 0, 0, 2, 7, 8])
    reader.push(chunk)
    const frame = reader.next()
    const kept = frame?.slice()
    chunk.fill(0)
    expect([frame, kept]).toEqual([Uint8Array.of(0, 0), Uint8Array.of(7, 8)])
  })
})
