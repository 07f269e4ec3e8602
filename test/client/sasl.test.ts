import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { authenticate, type SaslMechanism } from '../../src/client/sasl.ts'

const SALT = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')

interface Fake {
  readonly offers?: readonly string[]
  readonly password?: string
  readonly iterations?: number
  readonly changeNonce?: boolean
  /** Answers the last step of somebody who does not know the password. */
  readonly forge?: boolean
}

/** The broker's side of RFC 5802, for user "ann". */
class Broker {
  readonly #fake: Fake
  readonly sent: string[] = []
  #first = ''
  #serverFirst = ''

  constructor(fake: Fake = {}) {
    this.#fake = fake
  }

  request = async (api: { name: string }, body: object): Promise<never> => {
    const { offers = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] } = this.#fake
    if (api.name === 'SaslHandshake') {
      const { mechanism } = body as { mechanism: SaslMechanism }
      this.#mechanism = mechanism
      return { errorCode: offers.includes(mechanism) ? 0 : 33, mechanisms: offers } as never
    }
    const message = Buffer.from((body as { authBytes: Uint8Array }).authBytes).toString()
    this.sent.push(message)
    const answer = this.#answer(message)
    const isRefused = answer === null
    return {
      errorCode: isRefused ? 58 : 0,
      errorMessage: isRefused ? 'no' : null,
      authBytes: Buffer.from(answer ?? ''),
    } as never
  }
  #mechanism: SaslMechanism = 'PLAIN'

  #answer(message: string): string | null {
    const { password = 'secret', iterations = 4_096, changeNonce = false, forge = false } = this.#fake
    if (this.#mechanism === 'PLAIN') return message === `\0ann\0${password}` ? '' : null
    const hash = this.#mechanism === 'SCRAM-SHA-256' ? 'sha256' : 'sha512'
    if (message.startsWith('n,,')) {
      this.#first = message.slice(3)
      const nonce = changeNonce ? 'other' : this.#first.replace(/^.*,r=/, '')
      this.#serverFirst = `r=${nonce}broker,s=${SALT.toString('base64')},i=${iterations}`
      return this.#serverFirst
    }
    const hmac = (key: Buffer, text: string): Buffer => createHmac(hash, key).update(text).digest()
    const salted = pbkdf2Sync(password, SALT, iterations, hash === 'sha256' ? 32 : 64, hash)
    const [withoutProof = '', proof = ''] = message.split(',p=')
    const auth = `${this.#first},${this.#serverFirst},${withoutProof}`
    const stored = createHash(hash).update(hmac(salted, 'Client Key')).digest()
    const key = Buffer.from(proof, 'base64').map((byte, i) => byte ^ (hmac(stored, auth)[i] as number))
    const isKnown = createHash(hash).update(key).digest().equals(stored)
    if (!isKnown && !forge) return null
    return `v=${forge ? 'AAAA' : hmac(hmac(salted, 'Server Key'), auth).toString('base64')}`
  }
}

const as = (mechanism: SaslMechanism, username = 'ann', password = 'secret') => ({
  mechanism,
  username,
  password,
})

describe('authentication', () => {
  it.each(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const)(
    'by %s lets in who knows the password',
    async (name) => {
      await authenticate(new Broker(), as(name))
      const stranger = authenticate(new Broker({ password: 'other' }), as(name))
      await expect(stranger).rejects.toMatchObject({
        code: 'AUTHENTICATION_FAILED',
        message: 'authentication failed: no',
      })
    },
  )

  it('escapes what a name must not have, and never sends a password by SCRAM', async () => {
    const broker = new Broker()
    await authenticate(broker, as('SCRAM-SHA-256', 'a=b,c'))
    expect(broker.sent[0]).toMatch(/^n,,n=a=3Db=2Cc,r=/)
    expect(broker.sent.join()).not.toContain('secret')
  })

  it.each([
    [{ changeNonce: true }, 'the broker changed the nonce'],
    [{ iterations: 2_000_000 }, 'the broker asks for 2000000 iterations'],
    [{ iterations: 0 }, 'the broker asks for 0 iterations'],
    [{ forge: true }, 'the broker does not know the password either'],
    [{ offers: ['PLAIN'] }, 'the broker does not offer SCRAM-SHA-512; it offers PLAIN'],
    [{ offers: [] }, 'the broker does not offer SCRAM-SHA-512; it offers nothing'],
  ])('refuses a broker that is %j', async (fake, why) => {
    const failed = authenticate(new Broker(fake), as('SCRAM-SHA-512'))
    await expect(failed).rejects.toThrow(`authentication failed: ${why}`)
  })
})
