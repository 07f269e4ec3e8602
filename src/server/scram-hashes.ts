/** The mechanisms of SCRAM and what they are made of, apart from how: options are checked without node:crypto being loaded. */

/** By the hash that is behind it. */
export type ScramMechanism = 'SCRAM-SHA-256' | 'SCRAM-SHA-512'

export const SCRAM_HASHES = {
  'SCRAM-SHA-256': 'sha256',
  'SCRAM-SHA-512': 'sha512',
} as const satisfies Record<ScramMechanism, string>

export const SCRAMS = Object.keys(SCRAM_HASHES) as readonly ScramMechanism[]
export const HASH_BYTES = { sha256: 32, sha512: 64 } as const
/** Kafka's, and the least that RFC 7677 asks for. */
export const MIN_ITERATIONS = 4_096
