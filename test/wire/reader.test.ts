import { describe, expect, it } from 'vitest'
import { WireReader } from '../../src/wire/reader.ts'
import { bytesOf, refusal } from './kit.ts'

function reader(hex: string): WireReader {
  return new WireReader(bytesOf(hex))
}

describe('a reader', () => {
  it('takes big-endian integers, with and without a sign', () => {
    const from = reader('ff 8000 8000 80000000 80000000 fffffffffffffffe')
    expect(from.int8()).toBe(-1)
    expect(from.int16()).toBe(-32_768)
    expect(from.uint16()).toBe(32_768)
    expect(from.int32()).toBe(-(2 ** 31))
    expect(from.uint32()).toBe(2 ** 31)
    expect(from.int64()).toBe(-2)
    expect(from.left).toBe(0)
  })

  it('takes 64-bit integers exactly up to 2^53, and rounds beyond', () => {
    expect(reader('001fffffffffffff').int64()).toBe(Number.MAX_SAFE_INTEGER)
    expect(reader('ffe0000000000001').int64()).toBe(Number.MIN_SAFE_INTEGER)
    expect(reader('7fffffffffffffff').int64()).toBe(2 ** 63)
    expect(reader('8000000000000000').int64()).toBe(-(2 ** 63))
  })

  it('takes floats, wherever they stand', () => {
    const from = reader('00 3ff8000000000000 7ff8000000000000')
    from.int8()
    expect(from.float64()).toBe(1.5)
    expect(from.float64()).toBeNaN()
  })

  it('takes any byte but 0 for true', () => {
    const from = reader('00 01 ff 02')
    expect([from.boolean(), from.boolean(), from.boolean(), from.boolean()]).toEqual([
      false,
      true,
      true,
      true,
    ])
  })

  it.each([
    ['00', 0],
    ['7f', 127],
    ['80 01', 128],
    ['ff ff 03', 65_535],
    ['ff ff ff ff 0f', 2 ** 32 - 1],
    // Longer than it has to be, which is allowed.
    ['80 80 00', 0],
  ])('takes the varint %s', (hex, value) => {
    const from = reader(hex)
    expect(from.uvarint()).toBe(value)
    expect(from.left).toBe(0)
  })

  it.each(['ff ff ff ff 10', 'ff ff ff ff ff 01', '80 80 80 80 80 00'])(
    'refuses the varint %s, which is longer than 32 bits',
    (hex) => {
      expect(refusal(() => reader(hex).uvarint())).toContain('longer than 32 bits')
    },
  )

  it('takes text of several bytes a character, and U+FFFD for what is none', () => {
    expect(reader('e5908d2df0908d88').text(8)).toBe('名-𐍈')
    expect(reader('61ff62').text(3)).toBe('a\u{fffd}b')
  })

  it('hands out views, not copies', () => {
    const bytes = bytesOf('00 01 02 03')
    const view = new WireReader(bytes, 1).view(2)
    expect([...view]).toEqual([1, 2])
    expect(view.buffer).toBe(bytes.buffer)
  })

  it.each([
    ['int8', '', (from: WireReader) => from.int8()],
    ['int16', '00', (from: WireReader) => from.int16()],
    ['uint16', '00', (from: WireReader) => from.uint16()],
    ['int32', '000000', (from: WireReader) => from.int32()],
    ['uint32', '000000', (from: WireReader) => from.uint32()],
    ['int64', '00000000000000', (from: WireReader) => from.int64()],
    ['float64', '00000000000000', (from: WireReader) => from.float64()],
    ['uuid', '000000000000000000000000000000', (from: WireReader) => from.uuid()],
    ['uvarint', '80', (from: WireReader) => from.uvarint()],
    ['text', '6161', (from: WireReader) => from.text(3)],
    ['view', '6161', (from: WireReader) => from.view(2 ** 31 - 1)],
  ])('refuses %s where the frame ends first', (_, hex, take) => {
    expect(refusal(() => take(reader(hex)))).toMatch(/malformed frame, at byte \d+: \d+ bytes should follow/)
  })

  it('reads nothing beyond its frame, even where its buffer goes on', () => {
    const frame = bytesOf('00 01 02 03 04 05 06 07').subarray(2, 4)
    expect(refusal(() => new WireReader(frame).int32())).toContain('4 bytes should follow, but there are 2')
    expect(new WireReader(frame).int16()).toBe(0x0203)
  })
})
