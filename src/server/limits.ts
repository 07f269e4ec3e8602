/**
 * What bounds a server: the defaults, and the two things that its connections share, bytes and places. Everything a
 * client can make grow has a bound here.
 */
import { MiB } from '../model/limits.ts'

export interface ServerLimits {
  /** Of one request; Kafka's socket.request.max.bytes. */
  readonly maxRequestBytes: number
  /** Of one that is no Produce. */
  readonly maxPlainRequestBytes: number
  /** Requests and responses of all connections together. */
  readonly maxBufferedBytes: number
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  /** Kafka's connections.max.idle.ms. */
  readonly maxIdleMs: number
}

export const DEFAULT_MAX_REQUEST_BYTES: number = 100 * MiB
/**
 * Of any request but Produce, whose bytes are records: what is read of the others takes up to fifty times as much in
 * objects. A large group's assignment has room.
 */
export const DEFAULT_MAX_PLAIN_REQUEST_BYTES: number = 8 * MiB
export const DEFAULT_MAX_BUFFERED_BYTES: number = 256 * MiB
export const DEFAULT_MAX_CONNECTIONS = 10_000
export const DEFAULT_MAX_IDLE_MS = 600_000

/** Of a request, before it is known who sends it. */
export const MAX_UNAUTHENTICATED_BYTES = 65_536
/**
 * Topics, partitions, members and the like that one request names in all: twice as many as there are partitions, as a
 * rule (`maxPartitions`). A name can be a single byte, so that bytes alone bound neither the work nor the answer.
 */
export const MAX_REQUEST_ITEMS = 131_072
/** Memory of large requests that is kept for the next ones. */
export const MAX_FREE_REQUEST_BYTES: number = 8 * MiB
export const AUTHENTICATION_DEADLINE_MS = 5_000
/** Requests of one connection that were started and whose responses have not left the line. */
export const MAX_IN_FLIGHT = 32
/** Bytes of responses that a connection waits to write, after which it takes no further request. */
export const HIGH_WATER_BYTES: number = MiB
/** How long what is in flight may go on after a client said that it sends no more. */
export const LINGER_MS = 5_000

/**
 * Between two looks at a connection that holds room: where others wait for some, it has to send so many bytes of its
 * request meanwhile, or the rest of it, and to read some of its responses.
 */
export const LOOK_EVERY_MS = 10_000
export const MIN_PROGRESS_BYTES: number = 10 * MiB

/** The bytes that requests and responses of all connections take, and who waits until there are fewer. */
export class BufferedBytes {
  readonly #maxBytes: number
  #bytes = 0
  /** Of them, what is of responses. */
  #responseBytes = 0
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>()
  #waking = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whoever would begin something waits. What has begun goes on, or nothing would ever end. */
  get full(): boolean {
    return this.#bytes >= this.#maxBytes
  }

  /** Responses alone are too many: nothing that has come is answered until some have left. */
  get choked(): boolean {
    return this.#responseBytes >= this.#maxBytes
  }

  get awaited(): boolean {
    return this.#waiting.size > 0
  }

  take(sizeBytes: number): void {
    this.#bytes += sizeBytes
  }

  takeResponse(sizeBytes: number): void {
    this.#responseBytes += sizeBytes
    this.take(sizeBytes)
  }

  giveResponse(sizeBytes: number): void {
    this.#responseBytes -= sizeBytes
    this.give(sizeBytes)
  }

  give(sizeBytes: number): void {
    this.#bytes -= sizeBytes
    // One who goes on may give back too: he wakes nobody himself, or the stack would grow with the line.
    if (this.#waking) return
    this.#waking = true
    for (const resume of this.#waiting) {
      if (this.full) break
      this.#waiting.delete(resume)
      resume()
    }
    this.#waking = false
  }

  /** Calls back once, when there is room. */
  wait(resume: () => void): void {
    this.#waiting.add(resume)
  }

  forget(resume: () => void): void {
    this.#waiting.delete(resume)
  }
}

/** The connections there are, in all and of each address. */
export class Places {
  readonly #max: number
  readonly #maxPerAddress: number
  readonly #byAddress = new Map<string, number>()
  #taken = 0

  constructor({
    maxConnections,
    maxConnectionsPerAddress,
  }: Pick<ServerLimits, 'maxConnections' | 'maxConnectionsPerAddress'>) {
    this.#max = maxConnections
    this.#maxPerAddress = maxConnectionsPerAddress
  }

  /** Why there is none, for people; `undefined` where it was taken. */
  take(address: string): string | undefined {
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (this.#taken >= this.#max) return `there are ${this.#max} connections already (maxConnections)`
    if (ofAddress >= this.#maxPerAddress) {
      return `${address} has ${this.#maxPerAddress} connections already (maxConnectionsPerAddress)`
    }
    this.#taken++
    this.#byAddress.set(address, ofAddress + 1)
    return undefined
  }

  give(address: string): void {
    this.#taken--
    const left = (this.#byAddress.get(address) ?? 0) - 1
    if (left > 0) this.#byAddress.set(address, left)
    else this.#byAddress.delete(address)
  }
}
