/**
 * One connection to a Kafka broker: frames out, frames in, each response to its request. Speaks of every API the newest
 * version that both sides know. Responses come in the order of the requests; one that is of another request, or cannot
 * be read, ends the connection, since nothing that follows can be told apart.
 *
 *   request ─► frame ─► socket ─► … ─► socket ─► frame ─► the oldest that waits
 */
import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions as TlsOptions, connect as tlsConnect } from 'node:tls'
import type { Clock } from '../model/clock.ts'
import { OdradekError } from '../model/errors.ts'
import { type Api, type RequestInputOf, type ResponseOf, readResponse, writeRequest } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { FrameReader } from '../wire/frames.ts'
import { apiVersions } from '../wire/messages/18-api-versions.ts'
import { authenticate, type SaslCredentials } from './sasl.ts'

const MAX_RESPONSE_BYTES = 512 * 1024 * 1024
const NAME = 'odradek'

export interface ConnectionOptions {
  readonly clientId: string
  readonly clock: Clock
  /** Milliseconds for connecting, and for each response beyond what a request itself lets the broker wait. */
  readonly timeoutMs: number
  readonly version: string
  readonly tls?: TlsOptions
  readonly sasl?: SaslCredentials
}

export interface BrokerAddress {
  readonly host: string
  readonly port: number
}

export interface RequestOptions {
  readonly version?: number | undefined
  /** The newest version that says what is wanted in the way it is wanted. */
  readonly upTo?: number
  /** How long the request itself lets the broker take. */
  readonly waitMs?: number
}

interface Waiting {
  readonly correlationId: number
  readonly take: (frame: Uint8Array) => void
  readonly fail: (error: OdradekError) => void
}

interface Range {
  readonly minVersion: number
  readonly maxVersion: number
}

export class Connection {
  readonly address: BrokerAddress
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #frames = new FrameReader(checkedSize)
  readonly #waiting: Waiting[] = []
  #correlationId = 0
  #versions: ReadonlyMap<number, Range> = new Map()
  #ended: OdradekError | undefined

  private constructor(socket: Socket, address: BrokerAddress, options: ConnectionOptions) {
    this.#socket = socket
    this.address = address
    this.#options = options
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', (error) => this.#end(connectionLost(address, error)))
    socket.on('close', () => this.#end(connectionLost(address)))
  }

  /** @throws OdradekError CONNECTION_FAILED, TIMEOUT, PROTOCOL_ERROR, UNSUPPORTED */
  static async open(address: BrokerAddress, options: ConnectionOptions): Promise<Connection> {
    const socket = await connected(address, options)
    const connection = new Connection(socket, address, options)
    try {
      await connection.#start()
      return connection
    } catch (error) {
      connection.close()
      throw error
    }
  }

  async #start(): Promise<void> {
    const { sasl } = this.#options
    this.#versions = await this.#askVersions()
    if (sasl !== undefined) await authenticate(this, sasl)
  }

  get isOpen(): boolean {
    return this.#ended === undefined
  }

  /** The newest version of an API that both sides speak; undefined for none. */
  versionOf(api: Api, upTo: number = Number.POSITIVE_INFINITY): number | undefined {
    const range = this.#versions.get(api.key)
    if (range === undefined) return undefined
    const version = Math.min(api.max, range.maxVersion, upTo)
    return version < api.min || version < range.minVersion ? undefined : version
  }

  /** APIs that the broker speaks, by key. */
  get versions(): ReadonlyMap<number, Range> {
    return this.#versions
  }

  /**
   * Sends a request in the newest version that both sides speak, or in the one that is given.
   * @throws OdradekError UNSUPPORTED, TIMEOUT, CONNECTION_FAILED, PROTOCOL_ERROR
   */
  request<A extends Api>(
    api: A,
    body: RequestInputOf<A>,
    { upTo = Number.POSITIVE_INFINITY, version = this.versionOf(api, upTo), waitMs = 0 }: RequestOptions = {},
  ): Promise<ResponseOf<A>> {
    if (version === undefined) return Promise.reject(unspoken(api, this.address))
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    return new Promise((resolve, reject) => {
      const correlationId = ++this.#correlationId & 0x7fff_ffff
      const { clientId, clock, timeoutMs } = this.#options
      const timer = clock.setTimer(() => {
        this.#end(new OdradekError('TIMEOUT', `${where(this.address)} did not answer ${api.name} in time`))
      }, waitMs + timeoutMs)
      const take = (frame: Uint8Array): void => {
        timer.cancel()
        resolve(readResponse(api, answeredIn(api, version, frame), frame).body as ResponseOf<A>)
      }
      const fail = (error: OdradekError): void => {
        timer.cancel()
        reject(error)
      }
      this.#waiting.push({ correlationId, take, fail })
      this.#write(writeRequest(api, version, { correlationId, clientId }, body as never))
    })
  }

  /** Sends a request that nobody answers, as a produce without acknowledgement. */
  send<A extends Api>(api: A, body: RequestInputOf<A>): void {
    const version = this.versionOf(api)
    if (version === undefined) throw unspoken(api, this.address)
    const correlationId = ++this.#correlationId & 0x7fff_ffff
    this.#write(
      writeRequest(api, version, { correlationId, clientId: this.#options.clientId }, body as never),
    )
  }

  close(): void {
    this.#end(new OdradekError('CLOSED', `the connection to ${where(this.address)} is closed`))
  }

  #write(pieces: readonly Uint8Array[]): void {
    this.#socket.cork()
    for (const piece of pieces) this.#socket.write(piece)
    this.#socket.uncork()
  }

  #read(chunk: Uint8Array): void {
    try {
      this.#frames.push(chunk)
      for (let frame = this.#frames.next(); frame !== undefined; frame = this.#frames.next()) {
        this.#answered(frame)
      }
    } catch (error) {
      this.#end(error instanceof OdradekError ? error : connectionLost(this.address, error))
    }
  }

  #answered(frame: Uint8Array): void {
    const waiting = this.#waiting.shift()
    const correlationId = frame.length < 4 ? -1 : new DataView(frame.buffer, frame.byteOffset).getInt32(0)
    if (waiting === undefined || waiting.correlationId !== correlationId) {
      if (waiting !== undefined) this.#waiting.unshift(waiting)
      throw new OdradekError('PROTOCOL_ERROR', `${where(this.address)} answered what was not asked`)
    }
    try {
      waiting.take(frame)
    } catch (error) {
      this.#waiting.unshift(waiting)
      throw error
    }
  }

  #end(error: OdradekError): void {
    if (this.#ended !== undefined) return
    this.#ended = error
    this.#socket.destroy()
    for (const each of this.#waiting.splice(0)) each.fail(error)
  }

  /** In version 3; a broker that does not know it answers in version 0, and says so. */
  async #askVersions(): Promise<ReadonlyMap<number, Range>> {
    const body = { clientSoftwareName: NAME, clientSoftwareVersion: this.#options.version }
    let answer: ResponseOf<typeof apiVersions>
    try {
      answer = await this.request(apiVersions, body, { version: 3 })
    } catch (error) {
      if (!(error instanceof OdradekError) || error.code !== 'PROTOCOL_ERROR') throw error
      throw new OdradekError('PROTOCOL_ERROR', `${where(this.address)} is no Kafka broker: ${error.message}`)
    }
    if (answer.errorCode !== KAFKA_ERRORS.NONE) {
      throw new OdradekError(
        'UNSUPPORTED',
        `${where(this.address)} is older than Kafka 2.4, and not spoken to`,
      )
    }
    return new Map(
      answer.apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, { minVersion, maxVersion }]),
    )
  }
}

function connected(address: BrokerAddress, { clock, timeoutMs, tls }: ConnectionOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // Addresses are no names for SNI (RFC 6066).
    const name = isIP(address.host) === 0 ? { servername: address.host } : {}
    const socket = tls === undefined ? connect(address) : tlsConnect({ ...name, ...tls, ...address })
    const timer = clock.setTimer(() => {
      socket.destroy()
      reject(new OdradekError('TIMEOUT', `${where(address)} does not answer`))
    }, timeoutMs)
    const failed = (error: Error): void => {
      timer.cancel()
      reject(connectionLost(address, error))
    }
    socket.once('error', failed)
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      timer.cancel()
      socket.off('error', failed)
      resolve(socket)
    })
  })
}

function where({ host, port }: BrokerAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'there is no host of this name',
  ECONNRESET: 'the broker closed the connection; does one of both sides speak TLS, and the other not?',
}

function connectionLost(address: BrokerAddress, cause?: unknown): OdradekError {
  const { code, message } = (cause ?? {}) as { code?: string; message?: string }
  const why = REASONS[code ?? ''] ?? message ?? 'the broker closed the connection'
  return new OdradekError('CONNECTION_FAILED', `${where(address)}: ${why}`, { cause })
}

/** A broker that does not know a version of ApiVersions says so in version 0. */
function answeredIn(api: Api, version: number, frame: Uint8Array): number {
  if (api.key !== apiVersions.key || frame.length < 6) return version
  const errorCode = new DataView(frame.buffer, frame.byteOffset).getInt16(4)
  return errorCode === KAFKA_ERRORS.UNSUPPORTED_VERSION ? 0 : version
}

function unspoken(api: Api, address: BrokerAddress): OdradekError {
  return new OdradekError(
    'UNSUPPORTED',
    `${where(address)} does not speak ${api.name} in a version known here`,
  )
}

function checkedSize(sizeBytes: number): true {
  if (sizeBytes >= 0 && sizeBytes <= MAX_RESPONSE_BYTES) return true
  throw new OdradekError(
    'PROTOCOL_ERROR',
    `a response of ${sizeBytes} bytes; at most ${MAX_RESPONSE_BYTES} are taken`,
  )
}
