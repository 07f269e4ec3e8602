/**
 * Who is at the other end of a connection, for as long as it lasts: what handlers and interceptors may know of it. The
 * connection makes it, and is told when its client has shown who it is.
 */
import { setMaxListeners } from 'node:events'
import type { Node } from './cluster.ts'
import type { Client } from './handler.ts'

/** Where a connection came in. */
export interface Door {
  /** The listener's name. */
  readonly listener: string
  readonly node: Node
  /** Whether a client must show who it is before anything else is answered. */
  readonly authenticates: boolean
}

const ANONYMOUS = 'User:ANONYMOUS'

export class Session implements Client {
  readonly host: string
  readonly door: Door
  readonly #gone = new AbortController()
  #principal: string | undefined
  readonly #onAuthenticated: () => void

  constructor(host: string, door: Door, onAuthenticated: () => void) {
    // Each of the requests in flight may wait for it, which is no leak.
    setMaxListeners(0, this.#gone.signal)
    this.host = host
    this.door = door
    this.#onAuthenticated = onAuthenticated
    this.#principal = door.authenticates ? undefined : ANONYMOUS
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

  /** Whoever waits for the client need not go on. */
  end(): void {
    this.#gone.abort()
  }
}
