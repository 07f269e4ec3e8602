/**
 * A Kafka broker for one test: in memory, at a free port of this machine, ready in milliseconds and gone without a
 * trace. What a client sends can be read in process, and the other way round.
 */
import type { Broker, BrokerOptions } from '../broker.ts'
import type { FaultControl } from '../server/fault-control.ts'
import type { Faults } from '../server/faults.ts'
import type { KafkaServer } from '../server/server.ts'
import type { ServeOptions } from '../server/server-options.ts'

/** Those of `serve`, but that the port is any free one. */
export interface TestServerOptions extends ServeOptions {
  /** Of the broker: clock, logger and so on. */
  readonly broker?: BrokerOptions
  /** What the chance of faults comes from. Default 1. */
  readonly seed?: number
  /** Faults by HTTP too, for clients of another language: a port of this machine, 0 for any free one. Default: none. */
  readonly faultsPort?: number
}

/** A broker in memory and its server. `await using` closes both. */
export class TestServer implements AsyncDisposable {
  /** The same topics, groups and offsets, in process. */
  readonly broker: Broker
  /** Addresses, and how many clients there are. */
  readonly server: KafkaServer
  /** What goes wrong, at a test's word. */
  readonly faults: Faults
  /** Where faults are ordered by HTTP, if anywhere: `http://127.0.0.1:<port>`. */
  readonly faultsUrl: string | undefined
  readonly #control: FaultControl | undefined

  /** @internal */
  constructor(broker: Broker, server: KafkaServer, faults: Faults, control: FaultControl | undefined) {
    this.broker = broker
    this.server = server
    this.faults = faults
    this.faultsUrl = control?.url
    this.#control = control
  }

  /** For a client's `bootstrap.servers` or `brokers`. */
  get bootstrap(): string {
    return this.server.bootstrap
  }

  /** Closes server and broker, whatever is in flight. */
  async close(): Promise<void> {
    await this.#control?.close()
    await this.server.close({ drainMs: 0 })
    await this.broker.close({ drainMs: 0 })
  }

  /** `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Starts a broker and serves it: `await using kafka = await startTestServer()`. @throws as `serve` does */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { broker: brokerOptions, seed = 1, faultsPort, ...rest } = options
  // Not before they are needed: everything else in odradek/testing runs without Node.
  const [{ serveWithFaults }, { openBroker }] = await Promise.all([
    import('../server/fault-control.ts'),
    import('../index.ts'),
  ])
  const broker = await openBroker('memory:', brokerOptions)
  try {
    const free = rest.listeners === undefined ? { port: 0 } : {}
    const { server, faults, control } = await serveWithFaults(broker, { ...free, ...rest }, seed, faultsPort)
    return new TestServer(broker, server, faults, control)
  } catch (error) {
    await broker.close()
    throw error
  }
}
