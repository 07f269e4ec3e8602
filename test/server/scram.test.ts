/** SCRAM as RFC 5802 has it, message by message. */
import { describe, expect, it } from 'vitest'
import { SaslFailure } from '../../src/server/sasl-failure.ts'
import { type KnownVerifier, ScramExchange, verifierOf, verifierOfNobody } from '../../src/server/scram.ts'
import { type FinalOptions, finalOf, type ScramName } from './sasl-client.ts'

const PASSWORD = 'pencil'
const BARE = 'n=user,r=rOprNGfwEbeRWgbNEkqO'

// RFC 7677, section 3: what its example derives from the password "pencil".
const RFC7677: KnownVerifier = {
  known: true,
  salt: Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64'),
  iterations: 4_096,
  storedKey: Buffer.from('WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=', 'base64'),
  serverKey: Buffer.from('wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=', 'base64'),
}

const bytes = (text: string): Uint8Array => Buffer.from(text)
const text = (answer: { readonly answer: Uint8Array }): string => Buffer.from(answer.answer).toString()

function failure(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    expect(error).toBeInstanceOf(SaslFailure)
    return (error as SaslFailure).message
  }
  throw new Error('it was taken')
}

function begun(verifier: KnownVerifier = RFC7677, header = 'n,,') {
  const asked: string[] = []
  const exchange = new ScramExchange('SCRAM-SHA-256', (user) => {
    asked.push(user)
    return verifier
  })
  const first = text(exchange.respond(bytes(`${header}${BARE}`)))
  const final = (options?: FinalOptions, password = PASSWORD) =>
    finalOf('SCRAM-SHA-256', password, BARE, first, options)
  return { exchange, first, final, asked }
}

describe('an exchange', () => {
  it('succeeds with what RFC 7677 derives from its password', () => {
    const { exchange, first, final, asked } = begun()
    expect(first).toMatch(/^r=rOprNGfwEbeRWgbNEkqO[\w-]{32},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096$/)
    const { message, answer } = final()
    const last = exchange.respond(bytes(message))
    expect(last.done).toBe(true)
    expect(text(last)).toBe(answer)
    expect(asked).toEqual(['user'])
    expect(exchange.user).toBe('user')
  })

  it.each<ScramName>(['SCRAM-SHA-256', 'SCRAM-SHA-512'])('succeeds with %s', async (mechanism) => {
    const verifier = { known: true, ...(await verifierOf(mechanism, 'gëheim')) }
    const exchange = new ScramExchange(mechanism, () => verifier)
    const first = text(exchange.respond(bytes(`n,,${BARE}`)))
    const { message, answer } = finalOf(mechanism, 'gëheim', BARE, first)
    expect(text(exchange.respond(bytes(message)))).toBe(answer)
  })

  it('has another nonce every time', () => {
    expect(begun().first).not.toBe(begun().first)
  })

  it('takes a client that could bind channels and sees that we cannot', () => {
    const { exchange, final } = begun(RFC7677, 'y,,')
    expect(exchange.respond(bytes(final({ binding: 'eSws' }).message)).done).toBe(true)
  })

  it('takes a client that acts for itself', () => {
    const { exchange, final } = begun(RFC7677, 'n,a=user,')
    const binding = Buffer.from('n,a=user,').toString('base64')
    expect(exchange.respond(bytes(final({ binding }).message)).done).toBe(true)
  })

  it('takes a client that puts its nonce in front once more, as librdkafka did before 2.6.1', () => {
    const { exchange, first, final } = begun()
    const [, nonce = ''] = /^r=([^,]*)/.exec(first) ?? []
    const { message, answer } = final({ nonce: `rOprNGfwEbeRWgbNEkqO${nonce}` })
    expect(text(exchange.respond(bytes(message)))).toBe(answer)
    // Not any other nonce in front of it.
    const other = begun()
    const [, again = ''] = /^r=([^,]*)/.exec(other.first) ?? []
    const wrong = other.final({ nonce: `x${again}` }).message
    expect(failure(() => other.exchange.respond(bytes(wrong)))).toMatch(/nonce/)
  })

  it('reads names with the two signs that are written otherwise', () => {
    const exchange = new ScramExchange('SCRAM-SHA-256', () => RFC7677)
    exchange.respond(bytes('n,,n=a=2Cb=3Dc,r=x,extension=1'))
    expect(exchange.user).toBe('a,b=c')
  })
})

describe('a first message is refused', () => {
  it.each([
    ['that is empty', '', 'the first message is none of SCRAM'],
    ['without a nonce', 'n,,n=user', 'the first message is none of SCRAM'],
    ['with an empty nonce', 'n,,n=user,r=', 'the first message is none of SCRAM'],
    ['with an extension that must be understood', 'n,,m=x,n=user,r=x', 'the first message is none of SCRAM'],
    ['without a user', 'n,,n=,r=x', 'the user name is none of SCRAM'],
    ['with an equals sign that stands for nothing', 'n,,n=a=b,r=x', 'the user name is none of SCRAM'],
    ['that binds the channel', 'p=tls-unique,,n=user,r=x', 'channel binding is not supported'],
    ['that acts for another', 'n,a=root,n=user,r=x', 'nobody can act for another user'],
  ])('%s', (_, message, reason) => {
    const exchange = new ScramExchange('SCRAM-SHA-256', () => RFC7677)
    expect(failure(() => exchange.respond(bytes(message)))).toBe(reason)
  })

  it('that is no UTF-8', () => {
    const exchange = new ScramExchange('SCRAM-SHA-256', () => RFC7677)
    expect(failure(() => exchange.respond(Uint8Array.of(0xff)))).toBe('a message is no UTF-8')
  })
})

describe('a final message is refused', () => {
  const no = 'user and password do not match'

  it('with the proof of another password', () => {
    const { exchange, final } = begun()
    expect(failure(() => exchange.respond(bytes(final({}, 'pencil2').message)))).toBe(no)
  })

  it.each([0, 31, 33, 64])('with a proof of %i bytes', (sizeBytes) => {
    const { exchange, final } = begun()
    const { message } = final({ proof: new Uint8Array(sizeBytes) })
    expect(failure(() => exchange.respond(bytes(message)))).toMatch(/do not match|none of SCRAM/)
  })

  it('with a right proof and a byte more', () => {
    const { exchange, final } = begun()
    const proof = Buffer.from(/,p=(.*)$/.exec(final().message)?.[1] ?? '', 'base64')
    const { message } = final({ proof: Buffer.concat([proof, Uint8Array.of(0)]) })
    expect(failure(() => exchange.respond(bytes(message)))).toBe(no)
  })

  it('of a user who is not there, whatever it proves', () => {
    const { exchange, final } = begun({ ...RFC7677, known: false })
    expect(failure(() => exchange.respond(bytes(final().message)))).toBe(no)
  })

  it('with another nonce, also the one of an exchange before: a replay', () => {
    const earlier = begun()
    const { message } = earlier.final()
    expect(earlier.exchange.respond(bytes(message)).done).toBe(true)
    const nonce = 'the nonce is not the one of this exchange'
    expect(failure(() => begun().exchange.respond(bytes(message)))).toBe(nonce)
    const { exchange, final } = begun()
    expect(failure(() => exchange.respond(bytes(final({ nonce: 'rOprNGfwEbeRWgbNEkqO' }).message)))).toBe(
      nonce,
    )
  })

  it('with another channel binding than at first', () => {
    const { exchange, final } = begun()
    const reason = 'the channel binding is another one than at first'
    expect(failure(() => exchange.respond(bytes(final({ binding: 'eSws' }).message)))).toBe(reason)
  })

  it('that is none', () => {
    const { exchange } = begun()
    expect(failure(() => exchange.respond(bytes('c=biws,r=x')))).toBe('the final message is none of SCRAM')
  })
})

describe('somebody who is not there', () => {
  it('looks every time like the same user, and like no other', () => {
    const secret = new Uint8Array(32)
    const one = verifierOfNobody('SCRAM-SHA-256', 'mallory', secret)
    expect(verifierOfNobody('SCRAM-SHA-256', 'mallory', secret)).toEqual(one)
    expect(verifierOfNobody('SCRAM-SHA-256', 'trudy', secret).salt).not.toEqual(one.salt)
    expect(verifierOfNobody('SCRAM-SHA-512', 'mallory', secret).salt).not.toEqual(one.salt)
    expect(verifierOfNobody('SCRAM-SHA-256', 'mallory', Uint8Array.of(1)).salt).not.toEqual(one.salt)
  })

  it('has salt and iterations of the size that others have', async () => {
    const real = await verifierOf('SCRAM-SHA-512', PASSWORD)
    const nobody = verifierOfNobody('SCRAM-SHA-512', 'mallory', new Uint8Array(32))
    const sizes = ({ salt, iterations, storedKey, serverKey }: typeof real) =>
      [salt.length, iterations, storedKey.length, serverKey.length].join()
    expect(sizes(nobody)).toBe(sizes(real))
  })
})
