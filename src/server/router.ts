/**
 * From a frame to the frame that answers it: header, handler, body, answer. What is not understood, or not spoken, throws
 * and so closes the connection, as Kafka does it; ApiVersions alone is answered in every version, since a client asks
 * it before it knows any.
 *
 * In front of the handler stand interceptors, in their order: who may do what, and faults that a test asks for. One
 * sees every request with its body, and its answer; it passes it on, answers itself, or throws.
 *
 *   frame ─► header ─► version ─► body ─► interceptor ─► … ─► handler
 *   frame ◄─ response, in the same version ◄──────────────────────┘
 */
import { showName } from '../core/names.ts'
import { messageOf, OdradekError } from '../model/errors.ts'
import type { Logger } from '../model/views.ts'
import { type RequestHeader, readRequest, readRequestHeader, writeResponse } from '../wire/api.ts'
import { produce } from '../wire/messages/00-produce.ts'
import { apiVersions } from '../wire/messages/18-api-versions.ts'
import { WireReader } from '../wire/reader.ts'
import { checkSize } from './frame-size.ts'
import { type Answer, type Call, Disconnect, type Handler } from './handler.ts'
import { unsupportedApiVersions } from './handlers/18-api-versions.ts'
import { DEFAULT_MAX_PLAIN_REQUEST_BYTES, MAX_REQUEST_ITEMS } from './limits.ts'
import type { Session } from './session.ts'
import type { World } from './world.ts'

/** SaslHandshake, ApiVersions, SaslAuthenticate: what a client may ask before it has shown who it is. */
const BEFORE_AUTHENTICATION: ReadonlySet<number> = new Set([17, 18, 36])

/** A request on its way to its handler. */
export interface Routed {
  readonly handler: Handler
  readonly body: unknown
  readonly call: Call
  readonly session: Session
}

/** `next` asks those that are behind, and in the end the handler. */
export type Interceptor = (request: Routed, next: () => Answer<unknown>) => Answer<unknown>

/** The pieces of a frame. */
type Frame = readonly Uint8Array[]

export class Router {
  readonly #world: World
  readonly #logger: Logger
  #handlers: ReadonlyMap<number, Handler> = new Map()
  readonly #interceptors: readonly Interceptor[]
  readonly #maxPlainRequestBytes: number

  constructor(
    world: World,
    handlers: readonly Handler[],
    interceptors: readonly Interceptor[] = [],
    maxPlainRequestBytes: number = DEFAULT_MAX_PLAIN_REQUEST_BYTES,
  ) {
    this.#world = world
    this.#logger = world.parts.ctx.logger
    this.#interceptors = interceptors
    this.#maxPlainRequestBytes = maxPlainRequestBytes
    this.speak(handlers)
  }

  /** With these from now on. */
  speak(handlers: readonly Handler[]): void {
    this.#handlers = new Map(handlers.map((handler) => [handler.api.key, handler]))
  }

  /**
   * Answers a frame without its length. The handler has been called when this returns. Where it throws or rejects, the
   * connection is to be closed, and the log has been told why.
   */
  route(frame: Uint8Array, session: Session, whenSent?: Call['whenSent']): Answer<Frame> {
    let name = 'a request'
    const { tokens } = session
    const failed = (error: unknown): never => {
      this.#tell(error, name, session)
      throw error
    }
    try {
      if (tokens !== undefined) {
        name = 'a token'
        const answer = tokens(frame)
        return answer instanceof Promise ? answer.catch(failed) : answer
      }
      const from = new WireReader(frame, 0, MAX_REQUEST_ITEMS)
      const header = readRequestHeader(from)
      name = nameOf(header, this.#handlers.get(header.apiKey))
      const answer = this.#answer(header, from, session, whenSent)
      return answer instanceof Promise ? answer.catch(failed) : answer
    } catch (error) {
      return failed(error)
    }
  }

  #answer(
    header: RequestHeader,
    from: WireReader,
    session: Session,
    whenSent: Call['whenSent'],
  ): Answer<Frame> {
    const { apiKey, apiVersion: version, correlationId } = header
    const handler = this.#handlers.get(apiKey)
    if (handler === undefined) throw new OdradekError('PROTOCOL_ERROR', `there is no API with key ${apiKey}`)
    if (!session.authenticated && !BEFORE_AUTHENTICATION.has(apiKey)) {
      throw new Disconnect('the client has not authenticated')
    }
    const { api } = handler
    const [min, max] = handler.advertised
    if (version < min || version > max) {
      if (apiKey === apiVersions.key) {
        return writeResponse(apiVersions, 0, correlationId, unsupportedApiVersions(handler))
      }
      throw new OdradekError('PROTOCOL_ERROR', `versions ${min} to ${max} are spoken`)
    }
    if (apiKey !== produce.key) {
      checkSize(from.bytes.length, this.#maxPlainRequestBytes, 'maxPlainRequestBytes, for any but Produce')
    }
    const { listener, node } = session.door
    const clientId = header.clientId ?? ''
    const call: Call = { version, clientId, client: session, session, node, listener, whenSent }
    const answer = this.#pass({ handler, body: readRequest(api, version, from), call, session }, 0)
    const write = (response: unknown): Frame | null =>
      response === null ? null : writeResponse(api, version, correlationId, response as never)
    return answer instanceof Promise ? answer.then(write) : write(answer)
  }

  #pass(request: Routed, index: number): Answer<unknown> {
    const interceptor = this.#interceptors[index]
    if (interceptor !== undefined) return interceptor(request, () => this.#pass(request, index + 1))
    return request.handler.answer(request.body, request.call, this.#world)
  }

  #tell(error: unknown, request: string, session: Session): void {
    const details = { request, client: session.host, listener: session.door.listener }
    const code = error instanceof OdradekError ? error.code : undefined
    const about = { ...details, reason: messageOf(error) }
    if (session.signal.aborted) {
      this.#logger.debug(about, 'a request ended whose client is gone')
    } else if (error instanceof Disconnect || code === 'CLOSED') {
      this.#logger.info(about, 'a connection is closed')
    } else if (code === 'PROTOCOL_ERROR') {
      this.#logger.warn(about, 'a request is not understood, and its connection closed')
    } else {
      this.#logger.error({ ...about, error }, 'a request failed, and its connection is closed')
    }
  }
}

function nameOf({ apiKey, apiVersion, clientId }: RequestHeader, handler: Handler | undefined): string {
  const api = handler?.api.name ?? `API ${apiKey}`
  return `${api}, version ${apiVersion}, of ${clientId === null ? 'a client without an id' : showName(clientId)}`
}
