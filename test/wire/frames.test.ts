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

class Memory extends BufferPool {
  readonly dropped: string[] = []

  constructor() {
    super(2 ** 20)
  }

  drop(chunk: Uint8Array): void {
    this.dropped.push(Buffer.from(chunk).toString())
  }
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

  it('that was put together gives its buffer back when it is done with, and not before', () => {
    const memory = new Memory()
    const reader = new FrameReader(() => true, memory)
    const next = (body: string, cut: number): Uint8Array => {
      const bytes = frame(body)
      reader.push(bytes.subarray(0, cut))
      expect([reader.next(), reader.heldBytes]).toEqual([undefined, 98_304])
      reader.push(bytes.subarray(cut))
      return reader.next() as Uint8Array
    }
    const first = next('a'.repeat(90_000), 50_000)
    const done = reader.lastDone
    const second = next('b'.repeat(90_000), 10)
    expect(second.buffer).not.toBe(first.buffer)
    expect(first.every((byte) => byte === 97)).toBe(true)
    done()
    const third = next('c'.repeat(85_000), 80_000)
    expect([third.buffer === first.buffer, third.length]).toEqual([true, 85_000])
    expect(third.every((byte) => byte === 99)).toBe(true)
  })

  it('lets go of its chunk when all of that was taken, and every view is done with', () => {
    const memory = new Memory()
    const reader = new FrameReader(() => true, memory)
    const chunk = Buffer.concat([frame('one'), frame('two'), frame('three').subarray(0, 6)])
    reader.push(chunk)
    const done = [0, 1].map(() => {
      reader.next()
      return reader.lastDone
    })
    done[0]?.()
    expect(reader.next()).toBeUndefined()
    expect(memory.dropped).toEqual([])
    const rest = frame('three').subarray(6)
    reader.push(rest)
    expect(Buffer.from(reader.next() ?? []).toString()).toBe('three')
    // Nothing is a view of it.
    expect(memory.dropped).toEqual([rest.toString()])
    done[1]?.()
    expect(memory.dropped).toEqual([rest.toString(), chunk.toString()])
  })

  it('keeps its chunk where it is never said that it is done with', () => {
    const memory = new Memory()
    const reader = new FrameReader(() => true, memory)
    reader.push(STREAM)
    for (const _ of BODIES) reader.next()
    reader.push(frame('next'))
    expect(Buffer.from(reader.next() ?? []).toString()).toBe('next')
    expect(memory.dropped).toEqual([])
  })

  it('keeps the chunk before while that is not taken, and lets go of the one that is copied behind it', () => {
    const memory = new Memory()
    let room = true
    const reader = new FrameReader(() => room, memory)
    reader.push(STREAM)
    expect(Buffer.from(reader.next() ?? []).toString()).toBe('one')
    const { lastDone } = reader
    room = false
    expect(reader.next()).toBeUndefined()
    reader.push(frame('next'))
    expect(memory.dropped).toEqual([frame('next').toString()])
    lastDone()
    expect(memory.dropped).toEqual([frame('next').toString(), STREAM.toString()])
    room = true
    expect(all(reader)).toEqual([...BODIES.slice(1), 'next'])
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
