/**
 * Faults by HTTP, for test suites in any language: what `Faults` does, as JSON, on this machine alone. It is never there
 * unless a test asks for it: whoever reaches it can make the server lie to its clients.
 *
 *   GET     tells, and changes nothing                      /           what there is
 *   POST    adds or moves                                   /faults     what goes wrong, /faults/1 one of it
 *   DELETE  takes away                                      /leaders    /coordinators    /release
 *                                                           /requests   what the server was asked
 *
 * No page of a browser can do harm here: Host is a name of this machine, Origin is nobody's, and what is sent is JSON
 * that says so, for which a browser asks leave first, and gets none.
 */
import type { Broker } from '../broker.ts'
import { invalid } from '../core/settings.ts'
import { OdradekError } from '../model/errors.ts'
import { kafkaErrorName } from '../wire/errors.ts'
import { type Fault, type FaultOptions, Faults, type KafkaErrorName } from './faults.ts'
import { HttpPort, type HttpRequest, type Page } from './http-port.ts'
import { RELEASES, type Release } from './releases.ts'
import { RequestLog } from './request-log.ts'
import { type KafkaServer, serveWith } from './server.ts'
import type { ServeOptions } from './server-options.ts'

const HOST = '127.0.0.1'
const MAX_BODY_BYTES = 64 * 1024
const MAX_FAULTS = 1_000
const OK = 200
const CREATED = 201

type Json = Readonly<Record<string, unknown>>
type Route = (request: HttpRequest, body: Json, id: string) => Page
type Types = Readonly<Record<string, readonly string[]>>

interface Listed {
  readonly fault: Fault
  readonly asked: Json
}

const OPTIONS: Types = {
  api: ['string', 'number'],
  topic: ['string'],
  partition: ['number'],
  clientId: ['string'],
  node: ['number'],
  skip: ['number'],
  times: ['number'],
  probability: ['number'],
  seed: ['number'],
  when: ['string'],
}
const ACTS: Types = { error: ['string', 'number'], delayMs: ['number'], drop: ['boolean'] }

/** What is not done, with the status that says so. */
class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly allow: string | undefined

  constructor(status: number, code: string, message: string, allow?: string) {
    super(message)
    this.status = status
    this.code = code
    this.allow = allow
  }
}

/** An HTTP port that orders faults. */
export class FaultControl {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly #port: HttpPort
  readonly #stop: () => void

  /** Port 0: a free one. @throws OdradekError LISTEN_ERROR */
  static async open(faults: Faults, port: number): Promise<FaultControl> {
    const log = new RequestLog()
    const routes = new Routes(faults, log)
    const http = await HttpPort.open({ host: HOST, port }, (request) => routes.page(request), {
      refused,
      idleMs: 0,
    })
    return new FaultControl(
      http,
      faults.onRequest((request) => log.add(request)),
    )
  }

  private constructor(port: HttpPort, stop: () => void) {
    this.url = port.url
    this.#port = port
    this.#stop = stop
  }

  /** Takes no more orders; faults that were ordered go on. */
  close(): Promise<void> {
    this.#stop()
    return this.#port.close()
  }
}

/** A server at which faults can be ordered; by HTTP too, where there is a port for it. @throws as `serve` does */
export async function serveWithFaults(
  broker: Broker,
  options: ServeOptions,
  seed: number,
  port: number | undefined,
): Promise<{ server: KafkaServer; faults: Faults; control: FaultControl | undefined }> {
  const faults = new Faults(seed)
  const server = await serveWith(broker, options, [faults.interceptor])
  try {
    faults.attach(broker, server)
    const control = port === undefined ? undefined : await FaultControl.open(faults, port)
    return { server, faults, control }
  } catch (error) {
    await server.close({ drainMs: 0 })
    throw error
  }
}

class Routes {
  readonly #faults: Faults
  readonly #log: RequestLog
  /** By id, also those that happen no more: a test asks how often they have. */
  readonly #listed = new Map<number, Listed>()
  #lastId = 0

  readonly #routes: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
    '/': { GET: () => json(OK, { routes: Object.keys(this.#routes), guide: 'docs/guide/testing.md' }) },
    '/faults': {
      GET: () => this.#all(),
      POST: (_, body) => this.#add(body),
      DELETE: () => this.#removeAll(),
    },
    '/faults/{id}': {
      GET: (_request, _body, id) => json(OK, this.#view(...this.#require(id))),
      DELETE: (_request, _body, id) => this.#remove(id),
    },
    '/leaders': { POST: (_, body) => this.#moveLeader(body) },
    '/coordinators': { POST: (_, body) => this.#moveCoordinator(body) },
    '/release': { POST: (_, body) => this.#pretend(body) },
    '/requests': {
      GET: (request) => this.#requests(request),
      DELETE: () => {
        this.#log.clear()
        return json(OK, {})
      },
    },
  }

  constructor(faults: Faults, log: RequestLog) {
    this.#faults = faults
    this.#log = log
  }

  async page(request: HttpRequest): Promise<Page> {
    try {
      if (request.headers.origin !== undefined)
        throw new HttpError(403, 'FORBIDDEN', 'web pages have no say here')
      const [, id = ''] = /^\/faults\/(\d{1,9})$/.exec(request.path) ?? []
      const methods = this.#routes[id === '' ? request.path : '/faults/{id}']
      if (methods === undefined) {
        throw new HttpError(404, 'NOT_FOUND', `there are ${Object.keys(this.#routes).join(', ')}`)
      }
      const method = request.method === 'HEAD' ? 'GET' : request.method
      const route = Object.hasOwn(methods, method) ? methods[method] : undefined
      if (route === undefined) {
        const allow = Object.keys(methods).join(', ')
        throw new HttpError(405, 'METHOD_NOT_ALLOWED', `${request.path} takes ${allow}`, allow)
      }
      return route(request, method === 'POST' ? await jsonOf(request) : {}, id)
    } catch (error) {
      return failed(error)
    }
  }

  #all(): Page {
    return json(OK, { faults: [...this.#listed].map(([id, listed]) => this.#view(id, listed)) })
  }

  #add(body: Json): Page {
    const asked = typed(body, { ...ACTS, ...OPTIONS })
    if (this.#listed.size >= MAX_FAULTS) {
      throw new HttpError(409, 'TOO_MANY', `${MAX_FAULTS} faults are listed: DELETE some of them`)
    }
    const id = ++this.#lastId
    const listed = { fault: this.#arm(asked), asked }
    this.#listed.set(id, listed)
    return json(CREATED, this.#view(id, listed))
  }

  #arm(asked: Json): Fault {
    const { error, delayMs, drop, ...rest } = asked
    if (Object.keys(ACTS).filter((name) => asked[name] !== undefined).length !== 1 || drop === false) {
      throw invalid('a fault is one of "error": <name>, "delayMs": <number>, "drop": true')
    }
    const options = rest as FaultOptions
    if (error !== undefined) return this.#faults.error(errorNamed(error), options)
    return drop === true ? this.#faults.drop(options) : this.#faults.delay(delayMs as number, options)
  }

  #view(id: number, { fault: { hits, active }, asked }: Listed): Json {
    return { id, hits, active, ...asked }
  }

  #require(text: string): [number, Listed] {
    const id = Number(text)
    const listed = this.#listed.get(id)
    if (listed === undefined) throw new HttpError(404, 'NOT_FOUND', `there is no fault ${id}`)
    return [id, listed]
  }

  #remove(text: string): Page {
    const [id, listed] = this.#require(text)
    listed.fault.remove()
    this.#listed.delete(id)
    return json(OK, this.#view(id, listed))
  }

  /** Those that a test ordered in process stay. */
  #removeAll(): Page {
    for (const { fault } of this.#listed.values()) fault.remove()
    const page = this.#all()
    this.#listed.clear()
    return page
  }

  #moveLeader(body: Json): Page {
    const types = { topic: ['string'], partition: ['number'], node: ['number'] }
    const { topic, partition, node } = required(typed(body, types), ['topic', 'partition', 'node'])
    this.#faults.moveLeader(topic as string, partition as number, node as number)
    return json(OK, body)
  }

  #moveCoordinator(body: Json): Page {
    const types = { group: ['string'], transaction: ['string'], node: ['number'], rehash: ['boolean'] }
    const { group, transaction, node, rehash } = typed(body, types)
    if (rehash === true && group === undefined && transaction === undefined && node === undefined) {
      this.#faults.rehashCoordinators()
      return json(OK, body)
    }
    const key = group ?? transaction
    if (key === undefined || node === undefined || (group !== undefined && transaction !== undefined)) {
      throw invalid(
        'a move is {"group": <name>, "node": <id>}, {"transaction": …, "node": …}, or {"rehash": true}',
      )
    }
    const kind = group === undefined ? 'transaction' : 'group'
    this.#faults.moveCoordinator(kind, key as string, node as number)
    return json(OK, body)
  }

  #pretend(body: Json): Page {
    const { as } = required(typed(body, { as: ['string', 'object'] }), ['as'])
    if (as !== null && !RELEASES.includes(as as Release)) {
      throw invalid(`"as" is one of ${RELEASES.join(', ')}, or null for none; got ${JSON.stringify(as)}`)
    }
    this.#faults.pretend((as ?? undefined) as Release | undefined)
    return json(OK, body)
  }

  #requests({ query }: HttpRequest): Page {
    const after = Number(query.get('after') ?? 0)
    if (!(Number.isSafeInteger(after) && after >= 0)) throw invalid('after is the number of a request')
    if (query.has('follow')) {
      const text = (signal: AbortSignal): AsyncIterable<string> => this.#log.follow(after, signal)
      return { status: OK, type: 'application/x-ndjson', text }
    }
    const { lines, last, missed } = this.#log.after(after)
    const text = `{"last":${last},"missed":${missed},"requests":[${lines.join(',\n')}]}\n`
    return { status: OK, type: 'application/json', text }
  }
}

function json(status: number, value: unknown): Page {
  return { status, type: 'application/json', text: `${JSON.stringify(value)}\n` }
}

function refused(status: number, message: string): Page {
  return json(status, { code: 'FORBIDDEN', message })
}

function failed(error: unknown): Page {
  if (error instanceof HttpError) {
    const { status, code, message, allow } = error
    return { ...json(status, { code, message }), ...(allow === undefined ? {} : { allow }) }
  }
  // What `Faults` says of arguments that a program gives it.
  if (error instanceof RangeError) return json(400, { code: 'INVALID_ARGUMENT', message: error.message })
  if (!(error instanceof OdradekError)) throw error
  const { code, message } = error
  return json(code === 'UNKNOWN_TOPIC' ? 404 : 400, { code, message })
}

async function jsonOf(request: HttpRequest): Promise<Json> {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new HttpError(415, 'UNSUPPORTED_MEDIA_TYPE', 'send JSON, with content-type: application/json')
  }
  const text = await request.body(MAX_BODY_BYTES)
  if (text === undefined) {
    throw new HttpError(413, 'TOO_LARGE', `a request has at most ${MAX_BODY_BYTES} bytes`)
  }
  const value = parsed(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
  throw invalid('send an object, such as {"drop": true}')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalid(`that is no JSON: ${(error as Error).message}`)
  }
}

/** The object, if all of it is known and of its type. */
function typed(body: Json, types: Types): Json {
  for (const [name, value] of Object.entries(body)) {
    const expected = Object.hasOwn(types, name) ? types[name] : undefined
    if (expected === undefined) {
      throw invalid(`there is no "${name}"; there are ${Object.keys(types).join(', ')}`)
    }
    if (!expected.includes(typeof value)) {
      throw invalid(`"${name}" is a ${expected.join(' or a ')}; got ${JSON.stringify(value)}`)
    }
  }
  return body
}

function required(body: Json, names: readonly string[]): Json {
  const missing = names.filter((name) => body[name] === undefined)
  if (missing.length > 0) throw invalid(`say ${missing.map((name) => `"${name}"`).join(', ')} too`)
  return body
}

/** By name or by code. */
function errorNamed(error: unknown): KafkaErrorName {
  return (typeof error === 'number' ? kafkaErrorName(error) : error) as KafkaErrorName
}
