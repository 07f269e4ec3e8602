/**
 * Who may come in, and how a connection shows who it is (KIP-43, KIP-152): SaslHandshake names the mechanism, and the
 * tokens of that mechanism go to and fro until one side is convinced. It goes forward only: whatever is out of order,
 * or wrong once, ends the exchange for good.
 *
 *   new ─ handshake ─► named ─ token, … ─► done
 *    └────────┴──────────┴── any failure ─► failed
 *
 * Of passwords nothing is kept but what they are checked with. Whether a user exists is not to be told from what is
 * answered, nor from how long it takes.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { SaslFailure, utf8 } from './sasl-failure.ts'
import type { SaslMechanism, SaslSettings } from './sasl-options.ts'
import {
  type KnownVerifier,
  ScramExchange,
  type ScramVerifier,
  verifierOf,
  verifierOfNobody,
} from './scram.ts'
import { SCRAMS, type ScramMechanism } from './scram-hashes.ts'

const SECRET_BYTES = 32
/** A name that somebody made up is no longer in the log than this. */
const MAX_LOGGED = 100

/** All users of a listener. */
export class Authenticator {
  readonly mechanisms: readonly SaslMechanism[]
  /** Of this process, for what must look random and be the same every time. */
  readonly #secret: Uint8Array = randomBytes(SECRET_BYTES)
  /** Keyed digests: to compare passwords of any length in the same time. */
  readonly #passwords = new Map<string, Uint8Array>()
  readonly #verifiers = new Map<ScramMechanism, Map<string, ScramVerifier>>()

  static async open(settings: SaslSettings): Promise<Authenticator> {
    const authenticator = new Authenticator(settings.mechanisms)
    for (const [user, given] of settings.users) await authenticator.#add(user, given)
    return authenticator
  }

  private constructor(mechanisms: readonly SaslMechanism[]) {
    this.mechanisms = mechanisms
    for (const mechanism of SCRAMS) this.#verifiers.set(mechanism, new Map())
  }

  async #add(user: string, given: string | Partial<Record<ScramMechanism, ScramVerifier>>): Promise<void> {
    if (typeof given === 'string') this.#passwords.set(user, this.#digest(given))
    for (const mechanism of SCRAMS) {
      if (!this.mechanisms.includes(mechanism)) continue
      const verifier = typeof given === 'string' ? await verifierOf(mechanism, given) : given[mechanism]
      if (verifier !== undefined) this.#verifiers.get(mechanism)?.set(user, verifier)
    }
  }

  /** For a connection; `onDone` hears whom it has shown to be. */
  session(onDone: (user: string) => void): SaslSession {
    return new SaslSession(this, onDone)
  }

  exchange(mechanism: SaslMechanism): Exchange {
    if (mechanism === 'PLAIN') return new PlainExchange(this)
    return new ScramExchange(mechanism, (user) => this.#verifier(mechanism, user))
  }

  isPassword(user: string, password: string): boolean {
    const known = this.#passwords.get(user)
    const given = this.#digest(password)
    // Somebody who is not there is compared with himself, and still not believed.
    return timingSafeEqual(given, known ?? given) && known !== undefined
  }

  #verifier(mechanism: ScramMechanism, user: string): KnownVerifier {
    // Both are made, whoever asks.
    const nobody = verifierOfNobody(mechanism, user, this.#secret)
    const verifier = this.#verifiers.get(mechanism)?.get(user)
    return { ...(verifier ?? nobody), known: verifier !== undefined }
  }

  #digest(password: string): Uint8Array {
    return createHmac('sha256', this.#secret).update(password).digest()
  }
}

/** One side of the talk of one mechanism. */
interface Exchange {
  readonly user: string
  respond(token: Uint8Array): { readonly done: boolean; readonly answer: Uint8Array }
}

/** RFC 4616: `[acts for] NUL user NUL password`, in one message. */
class PlainExchange implements Exchange {
  readonly #users: Authenticator
  user = ''

  constructor(users: Authenticator) {
    this.#users = users
  }

  respond(token: Uint8Array): { readonly done: true; readonly answer: Uint8Array } {
    const [actsFor = '', user = '', password = '', ...rest] = utf8(token).split('\0')
    if (user === '' || password === '' || rest.length > 0) {
      throw new SaslFailure('the message is none of PLAIN')
    }
    this.user = user
    if (actsFor !== '' && actsFor !== user) throw new SaslFailure('nobody can act for another user')
    if (!this.#users.isPassword(user, password)) throw new SaslFailure('user and password do not match')
    return { done: true, answer: new Uint8Array(0) }
  }
}

/** What a handshake comes to. */
export type Handshake = 'named' | 'unknown mechanism' | 'out of order'

/** How one connection shows who it is. */
export class SaslSession {
  readonly #users: Authenticator
  readonly #onDone: (user: string) => void
  #state: 'new' | 'named' | 'done' | 'failed' = 'new'
  #mechanism: string | undefined
  #exchange: Exchange | undefined

  constructor(users: Authenticator, onDone: (user: string) => void) {
    this.#users = users
    this.#onDone = onDone
  }

  get mechanisms(): readonly SaslMechanism[] {
    return this.#users.mechanisms
  }

  /** Of the exchange, for the log. */
  get about(): { readonly mechanism: string | undefined; readonly user: string } {
    return { mechanism: this.#mechanism, user: (this.#exchange?.user ?? '').slice(0, MAX_LOGGED) }
  }

  handshake(name: string): Handshake {
    if (this.#state !== 'new') {
      if (this.#state === 'named') this.#state = 'failed'
      return 'out of order'
    }
    const mechanism = this.mechanisms.find((each) => each === name)
    if (mechanism === undefined) {
      this.#state = 'failed'
      return 'unknown mechanism'
    }
    this.#state = 'named'
    this.#mechanism = mechanism
    this.#exchange = this.#users.exchange(mechanism)
    return 'named'
  }

  /** Whether a token is what comes next. */
  get expectsToken(): boolean {
    return this.#state === 'named'
  }

  /** Whether it has come to its end, in one way or the other. */
  get isOver(): boolean {
    return this.#state === 'done' || this.#state === 'failed'
  }

  /** Answers a token; the connection has shown who it is when that is the last one. @throws SaslFailure */
  token(bytes: Uint8Array): Uint8Array {
    const exchange = this.#exchange
    if (this.#state !== 'named' || exchange === undefined) throw new SaslFailure('no mechanism was named')
    try {
      const { done, answer } = exchange.respond(bytes)
      if (done) {
        this.#state = 'done'
        this.#onDone(exchange.user)
      }
      return answer
    } catch (error) {
      this.#state = 'failed'
      throw error
    }
  }
}
