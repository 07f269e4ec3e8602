/**
 * Who is at the other end of a connection, for as long as it lasts: what handlers and interceptors may know of it. The
 * connection makes it, and is told when its client has shown who it is.
 */
import { setMaxListeners } from 'node:events'
import type { Node } from './cluster.ts'
import type { Answer, Client } from './handler.ts'
import type { Authenticator, SaslSession } from './sasl.ts'

/** Where a connection came in. */
export interface Door {
  /** The listener's name. */
  readonly listener: string
  readonly node: Node
  /** Whether a client must show who it is before anything else is answered. */
  readonly authenticates: boolean
  /** Whom it may be. */
  readonly users?: Authenticator | undefined
}

const ANONYMOUS = 'User:ANONYMOUS'

export class Session implements Client {
  readonly host: string
  readonly door: Door
  readonly sasl: SaslSession | undefined
  /** Takes frames as they are, where a client has said that it sends tokens without a header. */
  tokens: ((frame: Uint8Array) => Answer<readonly Uint8Array[]>) | undefined
  readonly #gone = new AbortController()
  #principal: string | undefined
  readonly #onAuthenticated: () => void
  readonly #onRefused: () => void

  /** `onRefused`: the connection is to be closed, once what is in flight is answered. */
  constructor(host: string, door: Door, onAuthenticated: () => void, onRefused: () => void = () => {}) {
    // Each of the requests in flight may wait for it, which is no leak.
    setMaxListeners(0, this.#gone.signal)
    this.host = host
    this.door = door
    this.#onAuthenticated = onAuthenticated
    this.#onRefused = onRefused
    this.#principal = door.authenticates ? undefined : ANONYMOUS
    this.sasl = door.users?.session((user) => this.authenticate(`User:${user}`))
  }

  get authenticated(): boolean {
    return this.#principal !== undefined
  }

  get principal(): string {
    return this.#principal ?? ANONYMOUS
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  /** `principal` in Kafka's form, `User:alice`. */
  authenticate(principal: string): void {
    this.#principal = principal
    this.#onAuthenticated()
  }

  /** The client is not who it says it is, or says it in a way that nobody understands. */
  refuse(): void {
    this.#onRefused()
  }

  /** Whoever waits for the client need not go on. */
  end(): void {
    this.#gone.abort()
  }
}
