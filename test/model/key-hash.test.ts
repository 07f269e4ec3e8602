import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashKey, murmur2, partitionOf } from '../../src/model/key-hash.ts'
import { keyBytes } from '../../src/model/record.ts'

/** Key, `Utils.murmur2` and the partitions of 12 and of 7, as kafka-clients 3.9.0 computes them. */
const JAVA: readonly (readonly [key: string, hash: number, of12: number, of7: number])[] = [
  ['', 275646681, 9, 2],
  ['a', -1563381124, 4, 5],
  ['ab', 316155434, 2, 0],
  ['abc', 479470107, 3, 4],
  ['abcd', -1323649548, 8, 5],
  ['21', -973932308, 0, 3],
  ['foobar', -790332482, 6, 0],
  ['a-little-bit-long-string', -985981536, 8, 1],
  ['a-little-bit-longer-string', -1486304829, 11, 0],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971, 5, 3],
  ['customer-42', -542987495, 9, 1],
  ['é', 186971271, 3, 4],
  ['naïve', 452640081, 9, 5],
  ['日本語', 1431860170, 10, 6],
  ['🚀 launch', -1476899679, 5, 6],
  ['order/2026-01-01', -267849653, 3, 1],
  ['\u0000\u007f', 953039929, 1, 2],
  ['x'.repeat(1000), -1068453602, 6, 3],
  ['ÿ'.repeat(7), 832462057, 1, 0],
]

describe('the hash of keys', () => {
  it.each(JAVA)('hashes %j as the Java client does', (key, hash, of12, of7) => {
    expect(murmur2(keyBytes(key))).toBe(hash)
    expect(hashKey(key)).toBe(hash)
    expect([partitionOf(key, 12), partitionOf(key, 7), partitionOf(key, 1)]).toEqual([of12, of7, 0])
  })

  it('reads bytes above 127 as unsigned, at every length of the tail', () => {
    const hashes = Array.from({ length: 10 }, (_, n) =>
      murmur2(Uint8Array.from({ length: n }, (_, i) => 0x80 + i * 13)),
    )
    expect(hashes).toEqual([
      275646681, 857690492, -1448732609, -1351435102, -207594780, -346297597, -2101218177, 495983774,
      505256306, 1185273456,
    ])
  })

  it('agrees with the Java client on 20,000 pseudo-random keys', () => {
    let x = 1
    const next = (): number => {
      x = (x * 48271) % 2147483647
      return x
    }
    let digest = 0
    for (let round = 0; round < 20_000; round++) {
      const bytes = new Uint8Array(next() % 40)
      for (let i = 0; i < bytes.length; i++) bytes[i] = (next() >> 8) & 0xff
      digest = (Math.imul(digest, 31) + murmur2(bytes)) | 0
    }
    expect(digest).toBe(-648664132)
  })

  it('puts a string and its UTF-8 bytes in the same partition', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 30 }),
        fc.integer({ min: 1, max: 1000 }),
        (key, n) => {
          const partition = partitionOf(key, n)
          expect(partitionOf(keyBytes(key), n)).toBe(partition)
          expect(partition).toBeGreaterThanOrEqual(0)
          expect(partition).toBeLessThan(n)
        },
      ),
    )
  })
})
