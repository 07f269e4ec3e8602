/**
 * A Kafka broker for one test: in memory, at a free port of this machine, ready in milliseconds and gone without a
 * trace. What a client sends can be read in process, and the other way round.
 */
import type { Broker, BrokerOptions } from '../broker.ts'
import type { KafkaServer } from '../server/server.ts'
import type { ServeOptions } from '../server/server-options.ts'

/** Those of `serve`, but that the port is any free one. */
export interface TestServerOptions extends ServeOptions {
  /** Of the broker: clock, logger and so on. */
  readonly broker?: BrokerOptions
}

/** A broker in memory and its server. `await using` closes both. */
export class TestServer implements AsyncDisposable {
  /** The same topics, groups and offsets, in process. */
  readonly broker: Broker
  /** Addresses, and how many clients there are. */
  readonly server: KafkaServer

  /** @internal */
  constructor(broker: Broker, server: KafkaServer) {
    this.broker = broker
    this.server = server
  }

  /** For a client's `bootstrap.servers` or `brokers`. */
  get bootstrap(): string {
    return this.server.bootstrap
  }

  /** Closes server and broker, whatever is in flight. */
  async close(): Promise<void> {
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
  const { broker: brokerOptions, ...rest } = options
  // Not before they are needed: everything else in odradek/testing runs without Node.
  const [{ serve }, { openBroker }] = await Promise.all([
    import('../server/server.ts'),
    import('../index.ts'),
  ])
  const broker = await openBroker('memory:', brokerOptions)
  try {
    const free = rest.listeners === undefined ? { port: 0 } : {}
    return new TestServer(broker, await serve(broker, { ...free, ...rest }))
  } catch (error) {
    await broker.close()
    throw error
  }
}
