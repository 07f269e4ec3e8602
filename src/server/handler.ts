/**
 * How an API is answered: its messages, and a function from request to response. Handlers only translate between the
 * protocol and the broker's parts; what lasts longer than a call is the world's.
 *
 * A handler is called in the order in which its connection sent its requests, and what it does before it first awaits
 * is done in that order too; responses leave in it, whoever is ready first. So a produce that waits for the disk does
 * not hold the next one up. Errors that a client can be told have a code in its response. What a handler throws closes
 * the connection, and is a fault of ours, if it is no `Disconnect`.
 *
 * Bytes in a request are views of what the socket delivered: what is kept for longer than the call is copied, or a name
 * of ten bytes keeps 64 KiB of strangers' requests.
 */
import type { Api, RequestOf, ResponseInputOf } from '../wire/api.ts'
import type { Node } from './cluster.ts'
import type { Session } from './session.ts'
import type { World } from './world.ts'

/** Who sent a request. */
export interface Client {
  /** Address, for DescribeGroups and logs. */
  readonly host: string
  /** Kafka's form: `User:alice`, `User:ANONYMOUS`. */
  readonly principal: string
  /** Aborted when the connection is gone: whoever waits for it need not go on. */
  readonly signal: AbortSignal
}

/** One request, beside its body. */
export interface Call {
  readonly version: number
  /** Empty where the client has none. */
  readonly clientId: string
  readonly client: Client
  /** What the connection knows of the client; handlers of authentication alone look at it. */
  readonly session?: Session
  /** The one that was asked. */
  readonly node: Node
  /** The listener's name, for its advertised addresses. */
  readonly listener: string
  /** Calls back when the response has left, so that what it is made of may be used again; not if it never leaves. */
  readonly whenSent?: ((sent: () => void) => void) | undefined
}

/** Null: there is no response (a produce that wants no acknowledgement). */
export type Answer<T> = T | null | Promise<T | null>

/**
 * Thrown where the protocol has no other answer than to close the connection, as for a produce that failed and wants
 * no acknowledgement. Nothing of ours is at fault then.
 */
export class Disconnect extends Error {
  override readonly name = 'Disconnect'
}

export interface Handler {
  readonly api: Api
  /**
   * What ApiVersions says, where that is more than what is spoken. Versions in between reach the handler too, which
   * tells the client that they are not supported.
   */
  readonly advertised: readonly [min: number, max: number]
  answer(request: unknown, call: Call, world: World): Answer<unknown>
}

export function handler<A extends Api>(
  api: A,
  answer: (request: RequestOf<A>, call: Call, world: World) => Answer<ResponseInputOf<A>>,
  advertised: readonly [min: number, max: number] = [api.min, api.max],
): Handler {
  return { api, advertised, answer: answer as Handler['answer'] }
}
