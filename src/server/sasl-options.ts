/** Users of a listener as they are given, checked. */
import { invalid, known } from '../core/settings.ts'
import type { ScramVerifier } from './scram.ts'
import { HASH_BYTES, MIN_ITERATIONS, SCRAM_HASHES, SCRAMS, type ScramMechanism } from './scram-hashes.ts'

/** How a client shows who it is. */
export type SaslMechanism = 'PLAIN' | ScramMechanism

/** What RFC 5802 lets a server store instead of a password, each in base64, as Kafka's own tools print it. */
export interface ScramCredential {
  readonly salt: string
  /** At least 4,096. */
  readonly iterations: number
  readonly storedKey: string
  readonly serverKey: string
}

/** Who may come in. */
export interface SaslOptions {
  /** By name: the password, or what is stored of it for each mechanism; with the latter there is no PLAIN. */
  readonly users: Readonly<Record<string, string | Partial<Record<ScramMechanism, ScramCredential>>>>
  /** Default: SCRAM-SHA-256 and SCRAM-SHA-512, and PLAIN where there is TLS or `insecure` is set. */
  readonly mechanisms?: readonly SaslMechanism[]
}

export interface SaslSettings {
  readonly users: ReadonlyMap<string, string | Partial<Record<ScramMechanism, ScramVerifier>>>
  readonly mechanisms: readonly SaslMechanism[]
}

const MAX_ITERATIONS = 1_000_000

/** `mayPlain`: whether a password may be sent as it is. @throws OdradekError INVALID_ARGUMENT */
export function saslSettings(where: string, options: SaslOptions, mayPlain: boolean): SaslSettings {
  const given = known(where, options, ['users', 'mechanisms'])
  const names = Object.entries(given.users ?? {})
  if (names.length === 0) throw invalid(`${where}.users has at least one, such as { alice: 'secret' }`)
  return {
    users: new Map(names.map(([name, value]) => [name, userOf(`${where}.users.${name}`, name, value)])),
    mechanisms: mechanismsOf(`${where}.mechanisms`, given.mechanisms, mayPlain),
  }
}

function mechanismsOf(
  where: string,
  given: SaslOptions['mechanisms'],
  mayPlain: boolean,
): readonly SaslMechanism[] {
  const safe: readonly SaslMechanism[] = mayPlain ? [...SCRAMS, 'PLAIN'] : SCRAMS
  if (given === undefined) return safe
  if (!Array.isArray(given) || given.length === 0) throw invalid(`${where} is a list of at least one`)
  for (const name of given as readonly SaslMechanism[]) {
    if (name === 'PLAIN' && !mayPlain) {
      throw invalid(`${where}: PLAIN sends passwords as they are; give tls, or say insecure: true`)
    }
    if (!safe.includes(name)) throw invalid(`${where} has SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN; got ${name}`)
  }
  return given
}

function userOf(
  where: string,
  name: string,
  value: SaslOptions['users'][string],
): string | Partial<Record<ScramMechanism, ScramVerifier>> {
  // A NUL ends a name in PLAIN.
  if (name === '' || name.includes('\0')) throw invalid(`${where}: that is no name of a user`)
  if (typeof value === 'string') {
    if (value === '' || value.includes('\0')) throw invalid(`${where}: that is no password`)
    return value
  }
  const given = known(where, value, SCRAMS)
  const verifiers = SCRAMS.flatMap((mechanism): [ScramMechanism, ScramVerifier][] => {
    const credential = given[mechanism]
    return credential === undefined
      ? []
      : [[mechanism, credentialOf(`${where}.${mechanism}`, mechanism, credential)]]
  })
  if (verifiers.length === 0) throw invalid(`${where} is a password, or has SCRAM-SHA-256 or SCRAM-SHA-512`)
  return Object.fromEntries(verifiers)
}

function credentialOf(where: string, mechanism: ScramMechanism, credential: ScramCredential): ScramVerifier {
  const given = known(where, credential, ['salt', 'iterations', 'storedKey', 'serverKey'])
  const { iterations = 0, salt, storedKey, serverKey } = given
  if (!Number.isInteger(iterations) || iterations < MIN_ITERATIONS || iterations > MAX_ITERATIONS) {
    throw invalid(`${where}.iterations is from ${MIN_ITERATIONS} to ${MAX_ITERATIONS}; got ${iterations}`)
  }
  const sizeBytes = HASH_BYTES[SCRAM_HASHES[mechanism]]
  return {
    iterations,
    salt: base64(`${where}.salt`, salt),
    storedKey: base64(`${where}.storedKey`, storedKey, sizeBytes),
    serverKey: base64(`${where}.serverKey`, serverKey, sizeBytes),
  }
}

function base64(where: string, text: string | undefined, sizeBytes?: number): Uint8Array {
  const bytes =
    typeof text === 'string' && /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null
  if (bytes !== null && bytes.length === (sizeBytes ?? bytes.length)) return bytes
  throw invalid(`${where} is ${sizeBytes === undefined ? 'bytes' : `${sizeBytes} bytes`} in base64`)
}
