/**
 * One feature of one client, against a server of its own: a broker in memory or in a directory, one node or several.
 *
 *   feature ──► trial.run('consume', …) ──► driver (a process) ──► server ──► broker ◄── feature, in process
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Broker } from '../../src/broker.ts'
import { openBroker } from '../../src/index.ts'
import { type KafkaServer, type ServeOptions, serve } from '../../src/server/index.ts'
import type { KafkaClient } from './clients.ts'
import { type Driver, Drivers } from './driver.ts'

export interface TrialOptions {
  /** Default 1. */
  readonly nodes?: number
  /** Whether records are kept in a directory, so that the server can be started anew. */
  readonly durable?: boolean
  /** Keys, certificates and users of its listener. */
  readonly security?: () => Pick<ServeOptions, 'tls' | 'sasl'>
}

/** Members of groups may be given up sooner than Kafka's brokers let them, so that trials of it take seconds. */
const GROUP_LIMITS = {
  minSessionTimeoutMs: 1_000,
  consumerHeartbeatIntervalMs: 500,
  consumerSessionTimeoutMs: 6_000,
}

const QUIET = { debug() {}, info() {}, warn() {}, error() {} }

export class Trial {
  readonly drivers = new Drivers()
  /** None where programs are tried. */
  readonly #client: KafkaClient | undefined
  /** Another client, where there is one. */
  readonly #other: KafkaClient | undefined
  readonly #directory: string | undefined
  readonly #options: TrialOptions
  #broker: Broker | undefined
  #server: KafkaServer | undefined

  private constructor(
    client: KafkaClient | undefined,
    other: KafkaClient | undefined,
    options: TrialOptions,
  ) {
    this.#client = client
    this.#other = other
    this.#options = options
    this.#directory = options.durable ? mkdtempSync(join(tmpdir(), 'odradek-interop-')) : undefined
  }

  static async open(
    client: KafkaClient | undefined,
    other: KafkaClient | undefined,
    options: TrialOptions,
  ): Promise<Trial> {
    const trial = new Trial(client, other, options)
    await trial.#start(0)
    return trial
  }

  get broker(): Broker {
    if (this.#broker === undefined) throw new Error('the broker is down')
    return this.#broker
  }

  get server(): KafkaServer {
    if (this.#server === undefined) throw new Error('the server is down')
    return this.#server
  }

  get hasOther(): boolean {
    return this.#other !== undefined
  }

  /** Starts the client. It is ended with the trial. */
  run(verb: string, args: object): Driver {
    if (this.#client === undefined) throw new Error('there is no client')
    return this.drivers.start(this.#client.command, this.server.bootstrap, verb, JSON.stringify(args))
  }

  /** The client, to its end. */
  async did(verb: string, args: object): Promise<Driver> {
    return this.drivers.done(this.run(verb, args))
  }

  /** The client, until it gives up; answers its last words. */
  async refused(verb: string, args: object): Promise<string> {
    const driver = this.run(verb, args)
    await this.drivers.given(driver)
    return driver.lastWords
  }

  /** Another client, to its end. */
  async otherDid(verb: string, args: object): Promise<Driver> {
    const { command } = this.#other as KafkaClient
    return this.drivers.done(this.drivers.start(command, this.server.bootstrap, verb, JSON.stringify(args)))
  }

  /** Closes server and broker and opens them again, at the same port. */
  async restart(): Promise<void> {
    const { port } = this.server.addresses[0] as { port: number }
    await this.#stop()
    await this.#start(port)
  }

  async close(): Promise<void> {
    await this.drivers.end()
    await this.#stop()
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true })
  }

  async #start(port: number): Promise<void> {
    const url = this.#directory === undefined ? 'memory:' : (`file:${this.#directory}` as const)
    // Where clients are refused, each of their connections is a warning.
    this.#broker = await openBroker(url, this.#options.security === undefined ? {} : { logger: QUIET })
    this.#server = await serve(this.#broker, {
      port,
      nodes: this.#options.nodes ?? 1,
      ...this.#options.security?.(),
    })
    this.#broker.parts.groups.configure(GROUP_LIMITS)
  }

  async #stop(): Promise<void> {
    await this.#server?.close({ drainMs: 100 })
    await this.#broker?.close()
    this.#server = undefined
    this.#broker = undefined
  }
}
