/** A client of SCRAM that does as it is told, right or wrong; and what a test needs to stand before a server with it. */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import type { Api, RequestInputOf, ResponseOf } from '../../src/wire/api.ts'
import { saslHandshake } from '../../src/wire/messages/17-sasl-handshake.ts'
import { saslAuthenticate } from '../../src/wire/messages/36-sasl-authenticate.ts'
import type { WireClient } from './wire-client.ts'

export type ScramName = 'SCRAM-SHA-256' | 'SCRAM-SHA-512'

/** Asks in version 1 of SaslHandshake and 2 of SaslAuthenticate, for the package's own client side. */
export function requesterOf(client: WireClient) {
  return {
    request: <A extends Api>(api: A, body: RequestInputOf<A>): Promise<ResponseOf<A>> =>
      client.ask(api, api.max, body),
  }
}

export async function handshake(client: WireClient, mechanism: string, version = 1): Promise<number> {
  return (await client.ask(saslHandshake, version, { mechanism })).errorCode
}

export async function token(
  client: WireClient,
  text: string | Uint8Array,
  version = 2,
): Promise<{ errorCode: number; errorMessage: string | null; text: string }> {
  const authBytes = typeof text === 'string' ? Buffer.from(text) : text
  const answer = await client.ask(saslAuthenticate, version, { authBytes })
  return { ...answer, text: Buffer.from(answer.authBytes).toString() }
}

export interface FinalOptions {
  readonly nonce?: string
  readonly binding?: string
  readonly proof?: Uint8Array
}

/** The final message to a server's first one, for a password; and what the server has to answer. */
export function finalOf(
  mechanism: ScramName,
  password: string,
  bare: string,
  serverFirst: string,
  { nonce, binding = 'biws', proof }: FinalOptions = {},
): { readonly message: string; readonly answer: string } {
  const hash = mechanism === 'SCRAM-SHA-256' ? 'sha256' : 'sha512'
  const hmac = (key: Uint8Array, text: string): Buffer => createHmac(hash, key).update(text).digest()
  const [, r = '', s = '', i = ''] = /^r=([^,]*),s=([^,]*),i=(\d+)$/.exec(serverFirst) ?? []
  const salted = pbkdf2Sync(password, Buffer.from(s, 'base64'), Number(i), hash === 'sha256' ? 32 : 64, hash)
  const clientKey = hmac(salted, 'Client Key')
  const withoutProof = `c=${binding},r=${nonce ?? r}`
  const auth = `${bare},${serverFirst},${withoutProof}`
  const signature = hmac(createHash(hash).update(clientKey).digest(), auth)
  const given = proof ?? clientKey.map((byte, at) => byte ^ (signature[at] as number))
  return {
    message: `${withoutProof},p=${Buffer.from(given).toString('base64')}`,
    answer: `v=${hmac(hmac(salted, 'Server Key'), auth).toString('base64')}`,
  }
}
