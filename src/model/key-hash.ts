/**
 * The partition of a key: murmur2 of its bytes, made positive, modulo the number of partitions. That is what Kafka's
 * Java client computes, so a key lands in the same partition whoever publishes it.
 */
import { type Key, keyBytes } from './record.ts'

const SEED = 0x9747b28c
const MULTIPLIER = 0x5bd1e995

/** The 32-bit murmur2 of Kafka's clients, signed as in Java. */
export function murmur2(bytes: Uint8Array): number {
  const length = bytes.length
  const tail = length & ~3
  let hash = SEED ^ length
  for (let i = 0; i < tail; i += 4) {
    hash = mix(
      hash,
      (bytes[i] as number) |
        ((bytes[i + 1] as number) << 8) |
        ((bytes[i + 2] as number) << 16) |
        ((bytes[i + 3] as number) << 24),
    )
  }
  if (tail === length) return finish(hash)
  let rest = 0
  for (let i = length - 1; i >= tail; i--) rest = (rest << 8) | (bytes[i] as number)
  return finish(Math.imul(hash ^ rest, MULTIPLIER))
}

/** The murmur2 of a key's bytes, without making them when the key is ASCII text, as most are. */
export function hashKey(key: Key): number {
  if (typeof key !== 'string') return murmur2(key)
  const length = key.length
  const tail = length & ~3
  let hash = SEED ^ length
  let seen = 0
  for (let i = 0; i < tail; i += 4) {
    const a = key.charCodeAt(i)
    const b = key.charCodeAt(i + 1)
    const c = key.charCodeAt(i + 2)
    const d = key.charCodeAt(i + 3)
    seen |= a | b | c | d
    hash = mix(hash, a | (b << 8) | (c << 16) | (d << 24))
  }
  let rest = 0
  for (let i = length - 1; i >= tail; i--) {
    const code = key.charCodeAt(i)
    seen |= code
    rest = (rest << 8) | code
  }
  if (seen > 0x7f) return murmur2(keyBytes(key))
  return finish(tail === length ? hash : Math.imul(hash ^ rest, MULTIPLIER))
}

/** The partition of a key among `partitions`. */
export function partitionOf(key: Key, partitions: number): number {
  return partitions === 1 ? 0 : (hashKey(key) & 0x7fff_ffff) % partitions
}

function mix(hash: number, word: number): number {
  const k = Math.imul(word, MULTIPLIER)
  return Math.imul(hash, MULTIPLIER) ^ Math.imul(k ^ (k >>> 24), MULTIPLIER)
}

function finish(hash: number): number {
  const h = Math.imul(hash ^ (hash >>> 13), MULTIPLIER)
  return h ^ (h >>> 15)
}
