import { describe, expect, it } from 'vitest'
import { WireReader } from '../../src/wire/reader.ts'
import { WireWriter } from '../../src/wire/writer.ts'
import { bytesOf, hexOf, written } from './kit.ts'

/** Large enough to be a piece of its own. */
function batch(sizeBytes: number, fill: number): Uint8Array {
  return new Uint8Array(sizeBytes).fill(fill)
}

describe('a writer', () => {
  it('puts big-endian integers', () => {
    const hex = written((to) => {
      to.int8(-1)
      to.int16(-2)
      to.int32(-3)
      to.int64(-4)
      to.boolean(true)
      to.boolean(false)
      to.float64(1.5)
    })
    expect(hex).toBe('fffffefffffffdfffffffffffffffc01003ff8000000000000')
  })

  it.each([
    [0, '0000000000000000'],
    [Number.MAX_SAFE_INTEGER, '001fffffffffffff'],
    [Number.MIN_SAFE_INTEGER, 'ffe0000000000001'],
    [2 ** 60, '1000000000000000'],
    [2 ** 63, '7fffffffffffffff'],
    [-(2 ** 63), '8000000000000000'],
  ])('puts the 64-bit integer %d as it would be read', (value, hex) => {
    expect(written((to) => to.int64(value))).toBe(hex)
    expect(new WireReader(bytesOf(hex)).int64()).toBe(value)
  })

  it.each([0.5, Number.NaN, Number.POSITIVE_INFINITY])('does not put %d as a 64-bit integer', (value) => {
    expect(() => written((to) => to.int64(value))).toThrow('is an integer')
  })

  it.each([
    [0, '00'],
    [127, '7f'],
    [128, '8001'],
    [16_384, '808001'],
    [2 ** 32 - 1, 'ffffffff0f'],
  ])('puts %d as a varint', (value, hex) => {
    expect(written((to) => to.uvarint(value))).toBe(hex)
  })

  it('copies what is small, and hands on what is large as it is', () => {
    const to = new WireWriter()
    const small = batch(2_047, 1)
    const large = batch(2_048, 2)
    to.int8(7)
    to.bytes(small)
    to.bytes(large)
    to.int8(8)
    const pieces = to.pieces()
    expect(pieces.map(({ length }) => length)).toEqual([2_048, 2_048, 1])
    expect(pieces[1]).toBe(large)
    expect(pieces.some(({ buffer }) => buffer === small.buffer)).toBe(false)
  })

  it('knows its size at every moment', () => {
    const to = new WireWriter()
    expect(to.sizeBytes).toBe(0)
    to.int32(1)
    expect(to.sizeBytes).toBe(4)
    to.bytes(batch(5_000, 1))
    expect(to.sizeBytes).toBe(5_004)
    to.bytes(batch(100, 1))
    expect(to.sizeBytes).toBe(5_104)
  })

  it('keeps the order over many buffers', () => {
    const to = new WireWriter()
    const expected: number[] = []
    for (let i = 0; i < 60_000; i++) {
      to.int32(i)
      expected.push(i)
    }
    const from = new WireReader(new Uint8Array(Buffer.concat(to.pieces())))
    expect(expected.map(() => from.int32())).toEqual(expected)
    expect(from.left).toBe(0)
  })

  it('has room for one thing that is larger than any buffer', () => {
    const text = 'é'.repeat(50_000)
    expect(hexOf([bytesOf(written((to) => to.text(text, 100_000)))])).toBe('c3a9'.repeat(50_000))
  })

  it('writes the length of the whole in front of a frame, large pieces included', () => {
    const to = new WireWriter()
    to.startFrame()
    to.int16(5)
    to.bytes(batch(3_000, 1))
    const pieces = to.finishFrame()
    expect(hexOf(pieces.slice(0, 1))).toBe(`${(3_002).toString(16).padStart(8, '0')}0005`)
  })

  it('never writes again where somebody else has written', () => {
    const frames = Array.from({ length: 5_000 }, (_, i) => {
      const to = new WireWriter()
      to.int32(i)
      // Another one at the same time, as for tagged fields.
      const inner = new WireWriter()
      inner.int32(-i)
      to.append(inner)
      return { i, pieces: to.pieces() }
    })
    for (const { i, pieces } of frames) {
      const from = new WireReader(new Uint8Array(Buffer.concat(pieces)))
      expect([from.int32(), from.int32()]).toEqual([i, i === 0 ? 0 : -i])
    }
  })

  it('shares a buffer with those after it, so that small frames make none', () => {
    const buffers = new Set<ArrayBufferLike>()
    for (let i = 0; i < 100; i++) {
      const to = new WireWriter()
      to.int32(i)
      for (const { buffer } of to.pieces()) buffers.add(buffer)
    }
    expect(buffers.size).toBeLessThan(5)
  })

  it('appends another one, whose large pieces stay as they are', () => {
    const to = new WireWriter()
    const inner = new WireWriter()
    const large = batch(4_000, 3)
    inner.int8(1)
    inner.bytes(large)
    to.int8(0)
    to.append(inner)
    expect(to.pieces()[1]).toBe(large)
  })
})
