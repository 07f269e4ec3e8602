import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crc32c } from '../../../src/log/format/crc32c.ts'

/** The definition, one bit at a time. */
function bitByBit(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}

describe('CRC-32C', () => {
  const ascending = Uint8Array.from({ length: 32 }, (_, i) => i)
  const scsiRead = new Uint8Array(48)
  scsiRead.set([0x01, 0xc0], 0)
  scsiRead[16] = 0x14
  scsiRead[22] = 0x04
  scsiRead[27] = 0x14
  scsiRead[31] = 0x18
  scsiRead[32] = 0x28
  scsiRead[40] = 0x02

  it.each([
    ['32 bytes of zeros', new Uint8Array(32), 0x8a9136aa],
    ['32 bytes of ones', new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ['32 ascending bytes', ascending, 0x46dd794e],
    ['32 descending bytes', ascending.toReversed(), 0x113fdb5c],
    ['an iSCSI read command', scsiRead, 0xd9963a56],
    ['the check value of the catalogues', new TextEncoder().encode('123456789'), 0xe3069283],
    ['nothing', new Uint8Array(0), 0],
  ])('of %s is that of RFC 3720 B.4', (_, bytes, expected) => {
    expect(crc32c(bytes)).toBe(expected)
  })

  it('is the definition at every length and alignment', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(15), (bytes, skip) => {
        const view = bytes.subarray(Math.min(skip, bytes.length))
        expect(crc32c(view)).toBe(bitByBit(view))
      }),
    )
  })

  it('goes on from that of what came before', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 }), (parts) => {
        const whole = Uint8Array.from(parts.flatMap((part) => [...part]))
        expect(parts.reduce((previous, part) => crc32c(part, previous), 0)).toBe(crc32c(whole))
      }),
    )
  })

  it('of a part is that of a view of it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), fc.nat(100), (bytes, a, b) => {
        const [from, to] = [Math.min(a, b, bytes.length), Math.min(Math.max(a, b), bytes.length)]
        expect(crc32c(bytes, 7, from, to)).toBe(crc32c(bytes.subarray(from, to), 7))
      }),
    )
  })
})
