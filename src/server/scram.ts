/**
 * The server's side of SCRAM (RFC 5802, RFC 7677; KIP-84): one exchange proves to the server that the client knows the
 * password, and to the client that the server has its verifier, without either of them sending it.
 *
 *   client ─► n,,n=alice,r=<its nonce>                          first
 *   client ◄─ r=<its nonce><ours>,s=<salt>,i=<iterations>
 *   client ─► c=biws,r=<both nonces>,p=<proof>                  final
 *   client ◄─ v=<signature>
 *
 * What is stored is what RFC 5802 says: nothing that a client could be impersonated with. A user that is not known
 * gets a salt all the same, the same one every time, and its proof is checked with as much work, so that nobody learns
 * who there is. An exchange goes forward only: a final message that was seen before has another nonce in it.
 */
import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { SaslFailure, utf8 } from './sasl-failure.ts'
import { HASH_BYTES, MIN_ITERATIONS, SCRAM_HASHES, type ScramMechanism } from './scram-hashes.ts'

/** What is known of a password: enough to check it, not enough to use it. */
export interface ScramVerifier {
  readonly salt: Uint8Array
  readonly iterations: number
  readonly storedKey: Uint8Array
  readonly serverKey: Uint8Array
}

const SALT_BYTES = 16
const NONCE_BYTES = 24

const derive = promisify(pbkdf2)

/** Names and attributes are separated by what a name may not have: `,` is =2C in it, `=` is =3D. */
const FIRST = /^([ny]|p=[^,]*),(?:a=([^,]*))?,(n=([^,]*),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/s
const FINAL = /^(c=([^,]*),r=([^,]*)(?:,.*)?),p=([A-Za-z0-9+/]+={0,2})$/s

/** The password's bytes are taken as they are, as in Kafka. */
export async function verifierOf(mechanism: ScramMechanism, password: string): Promise<ScramVerifier> {
  const hash = SCRAM_HASHES[mechanism]
  const salt = randomBytes(SALT_BYTES)
  const salted = await derive(password, salt, MIN_ITERATIONS, HASH_BYTES[hash], hash)
  return {
    salt,
    iterations: MIN_ITERATIONS,
    storedKey: digest(hash, hmac(hash, salted, 'Client Key')),
    serverKey: hmac(hash, salted, 'Server Key'),
  }
}

/** What a user is checked with who is not there: it looks like one who is. `secret` is the process's. */
export function verifierOfNobody(mechanism: ScramMechanism, user: string, secret: Uint8Array): ScramVerifier {
  const hash = SCRAM_HASHES[mechanism]
  return {
    salt: hmac(hash, secret, `${mechanism} salt ${user}`).subarray(0, SALT_BYTES),
    iterations: MIN_ITERATIONS,
    storedKey: hmac(hash, secret, `${mechanism} stored ${user}`),
    serverKey: hmac(hash, secret, `${mechanism} server ${user}`),
  }
}

export interface KnownVerifier extends ScramVerifier {
  /** False: whatever the proof, the answer is no. */
  readonly known: boolean
}

export class ScramExchange {
  readonly #mechanism: ScramMechanism
  readonly #verifierOf: (user: string) => KnownVerifier
  #user = ''
  #header = ''
  /** Ours is the end of it. */
  #nonce = ''
  #clientNonce = ''
  /** Both first messages, as they are signed. */
  #signed = ''
  #verifier: KnownVerifier | undefined

  constructor(mechanism: ScramMechanism, verifierOfUser: (user: string) => KnownVerifier) {
    this.#mechanism = mechanism
    this.#verifierOf = verifierOfUser
  }

  /** Whom the client says it is; empty before it did. */
  get user(): string {
    return this.#user
  }

  /** Answers a message; `done` with the last one. @throws SaslFailure */
  respond(message: Uint8Array): { readonly done: boolean; readonly answer: Uint8Array } {
    const text = utf8(message)
    const verifier = this.#verifier
    const done = verifier !== undefined
    return { done, answer: Buffer.from(done ? this.#final(text, verifier) : this.#first(text)) }
  }

  #first(text: string): string {
    const [, binding, authorized, bare, name, nonce] = FIRST.exec(text) ?? []
    if (binding === undefined || bare === undefined || name === undefined) {
      throw new SaslFailure('the first message is none of SCRAM')
    }
    if (binding.startsWith('p')) throw new SaslFailure('channel binding is not supported')
    this.#user = nameOf(name)
    if (authorized !== undefined && nameOf(authorized) !== this.#user) {
      throw new SaslFailure('nobody can act for another user')
    }
    this.#header = `${binding},${authorized === undefined ? '' : `a=${authorized}`},`
    this.#clientNonce = nonce ?? ''
    this.#nonce = `${nonce}${randomBytes(NONCE_BYTES).toString('base64url')}`
    this.#verifier = this.#verifierOf(this.#user)
    const { salt, iterations } = this.#verifier
    const answer = `r=${this.#nonce},s=${Buffer.from(salt).toString('base64')},i=${iterations}`
    this.#signed = `${bare},${answer}`
    return answer
  }

  #final(text: string, { known, storedKey, serverKey }: KnownVerifier): string {
    const [, withoutProof, binding, nonce, proofText] = FINAL.exec(text) ?? []
    if (withoutProof === undefined || proofText === undefined) {
      throw new SaslFailure('the final message is none of SCRAM')
    }
    if (Buffer.from(binding ?? '', 'base64').toString() !== this.#header) {
      throw new SaslFailure('the channel binding is another one than at first')
    }
    // librdkafka before 2.6.1 puts its own in front once more. Ours is in it all the same, and all of it is signed.
    if (nonce !== this.#nonce && nonce !== `${this.#clientNonce}${this.#nonce}`)
      throw new SaslFailure('the nonce is not the one of this exchange')
    const hash = SCRAM_HASHES[this.#mechanism]
    const auth = `${this.#signed},${withoutProof}`
    const proof = Buffer.from(proofText, 'base64')
    const signature = hmac(hash, storedKey, auth)
    const clientKey = signature.map((byte, i) => byte ^ (proof[i] ?? 0))
    const proved = timingSafeEqual(digest(hash, clientKey), storedKey)
    if (!known || !proved || proof.length !== signature.length) {
      throw new SaslFailure('user and password do not match')
    }
    return `v=${hmac(hash, serverKey, auth).toString('base64')}`
  }
}

function nameOf(text: string): string {
  if (text === '' || /=(?!2C|3D)/.test(text)) throw new SaslFailure('the user name is none of SCRAM')
  return text.replaceAll('=2C', ',').replaceAll('=3D', '=')
}

function hmac(hash: string, key: Uint8Array, text: string): Buffer {
  return createHmac(hash, key).update(text).digest()
}

function digest(hash: string, bytes: Uint8Array): Buffer {
  return createHash(hash).update(bytes).digest()
}
