/**
 * SASL, as a client: PLAIN (RFC 4616), SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), each step in a
 * SaslAuthenticate. The server's signature is checked: who does not know the password cannot pretend to be the broker.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto'
import { OdradekError } from '../model/errors.ts'
import type { Api, RequestInputOf, ResponseOf } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { saslHandshake } from '../wire/messages/17-sasl-handshake.ts'
import { saslAuthenticate } from '../wire/messages/36-sasl-authenticate.ts'

export type SaslMechanism = 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512'

export interface SaslCredentials {
  readonly mechanism: SaslMechanism
  readonly username: string
  readonly password: string
}

interface Requester {
  request<A extends Api>(api: A, body: RequestInputOf<A>): Promise<ResponseOf<A>>
}

const NONCE_BYTES = 24
/** What a client agrees to compute: beyond it a server makes it work, not itself safer. */
const MAX_ITERATIONS = 1_000_000

/** @throws OdradekError AUTHENTICATION_FAILED */
export async function authenticate(to: Requester, credentials: SaslCredentials): Promise<void> {
  const { mechanism, username, password } = credentials
  const { errorCode, mechanisms } = await to.request(saslHandshake, { mechanism })
  if (errorCode !== KAFKA_ERRORS.NONE) {
    throw refused(`the broker does not offer ${mechanism}; it offers ${mechanisms.join(', ') || 'nothing'}`)
  }
  if (mechanism === 'PLAIN') await step(to, `\0${username}\0${password}`)
  else await scram(to, credentials)
}

async function scram(to: Requester, { mechanism, username, password }: SaslCredentials): Promise<void> {
  const hash = mechanism === 'SCRAM-SHA-256' ? 'sha256' : 'sha512'
  const hmac = (key: Uint8Array, text: string): Buffer => createHmac(hash, key).update(text).digest()
  const nonce = randomBytes(NONCE_BYTES).toString('base64')
  const first = `n=${username.replaceAll('=', '=3D').replaceAll(',', '=2C')},r=${nonce}`
  const serverFirst = await step(to, `n,,${first}`)
  const { r: serverNonce = '', s: salt = '', i: iterations = '' } = attributes(serverFirst)
  const rounds = Number(iterations)
  if (!serverNonce.startsWith(nonce) || serverNonce === nonce) throw refused('the broker changed the nonce')
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > MAX_ITERATIONS) {
    throw refused(`the broker asks for ${iterations} iterations`)
  }
  const size = hash === 'sha256' ? 32 : 64
  const salted = pbkdf2Sync(password, Buffer.from(salt, 'base64'), rounds, size, hash)
  const clientKey = hmac(salted, 'Client Key')
  const withoutProof = `c=biws,r=${serverNonce}`
  const auth = `${first},${serverFirst},${withoutProof}`
  const signature = hmac(createHash(hash).update(clientKey).digest(), auth)
  const proof = clientKey.map((byte, i) => byte ^ (signature[i] as number))
  const { v = '' } = attributes(await step(to, `${withoutProof},p=${Buffer.from(proof).toString('base64')}`))
  const expected = hmac(hmac(salted, 'Server Key'), auth)
  const given = Buffer.from(v, 'base64')
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw refused('the broker does not know the password either')
  }
}

async function step(to: Requester, text: string): Promise<string> {
  const { errorCode, errorMessage, authBytes } = await to.request(saslAuthenticate, {
    authBytes: Buffer.from(text),
  })
  if (errorCode !== KAFKA_ERRORS.NONE) throw refused(errorMessage ?? 'user and password do not match')
  return Buffer.from(authBytes).toString()
}

function attributes(message: string): Partial<Record<string, string>> {
  return Object.fromEntries(message.split(',').map((part) => [part.slice(0, 1), part.slice(2)]))
}

function refused(why: string): OdradekError {
  return new OdradekError('AUTHENTICATION_FAILED', `authentication failed: ${why}`)
}
