/**
 * Real clients whose connections break and whose members are killed, judged by the history checker.
 *
 *   producers (idempotent) ─┐            ┌─ breaks every connection through it at random moments
 *                           ├─► proxy ───┤
 *   members of a group ─────┘            └─► server ─► broker, scanned in process at the end
 *
 * Every client says when it did what, by the clock that all processes of a machine share; the history is put together from
 * that afterwards (storm-history.ts). What breaks when comes from the seed; what clients make of it is theirs.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Broker } from '../../src/broker.ts'
import { openBroker } from '../../src/index.ts'
import { serve } from '../../src/server/index.ts'
import type { Anomaly } from '../../src/testing/history-anomalies.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'
import { CLIENTS, type KafkaClient } from './clients.ts'
import { type Driver, Drivers } from './driver.ts'
import { historyOf, type Scan } from './storm-history.ts'
import { TOPIC, text } from './values.ts'

export interface StormOptions {
  readonly seed: number
  /** Of each producer. */
  readonly count: number
  /** Members that are killed, one after the other; another one comes for each. */
  readonly kills: number
}

export interface StormResult {
  readonly anomalies: readonly Anomaly[]
  readonly broken: number
  readonly records: number
}

const GROUP = 'shippers'
const PARTITIONS = 4
const EVERY_MS = 10

/** Producers that are idempotent also when connections break, as far as they are here. */
export function producersHere(): KafkaClient[] {
  return CLIENTS.filter(({ id, missing }) => ['rdkafka', 'java'].includes(id) && missing() === undefined)
}

export async function storm({ seed, count, kills }: StormOptions): Promise<StormResult> {
  const random = randomOf(seed)
  const proxy = await Passage.open()
  const broker: Broker = await openBroker('memory:')
  await broker.createTopic(TOPIC, { partitions: PARTITIONS })
  const server = await serve(broker, { port: 0, advertised: { host: '127.0.0.1', port: proxy.port } })
  broker.parts.groups.configure({ minSessionTimeoutMs: 1_000 })
  proxy.target = (server.addresses[0] as { port: number }).port
  const drivers = new Drivers()
  try {
    const worker = CLIENTS.find(({ id }) => id === 'kafkajs') as KafkaClient
    const start = (client: KafkaClient, verb: string, args: object): Driver =>
      drivers.start(client.command, server.bootstrap, verb, JSON.stringify({ topic: TOPIC, ...args }))
    const work = (): Driver => start(worker, 'work', { group: GROUP, sessionMs: 6_000 })
    const members = [work(), work(), work()]
    const producers = producersHere().map((client) =>
      start(client, 'produce', {
        count,
        prefix: `${client.id}-`,
        idempotent: true,
        everyMs: EVERY_MS,
        timed: true,
      }),
    )
    const total = count * producers.length
    await drivers.until('members with partitions', () => members.some(({ assigned }) => assigned.length > 0))
    proxy.startBreaking(random)
    for (let kill = 1; kill <= kills; kill++) {
      const share = (total * kill) / (kills + 1)
      await drivers.until(`${share} records at the members`, () => seen(members) >= share)
      const victim = members[Math.floor(random() * members.length)] as Driver
      await victim.kill('SIGKILL')
      members.push(work())
    }
    await drivers.until('the end of the producers', () => producers.every(({ isDone }) => isDone))
    proxy.stopBreaking()
    await drivers.until('everything committed', () => committed(broker) === ends(broker))
    const scans: Scan[] = []
    for (const { partition, high } of broker.describe(TOPIC).partitions) {
      const records = (await broker.read(TOPIC, partition)).map(({ offset, value }) => ({
        offset,
        value: text(value),
      }))
      scans.push({ partition, high, records })
    }
    const history = historyOf({ seed, topic: TOPIC, group: GROUP, producers, members, scans })
    return { anomalies: checkHistory(history), broken: proxy.broken, records: ends(broker) }
  } finally {
    proxy.stopBreaking()
    await drivers.end()
    await server.close({ drainMs: 0 })
    await broker.close()
    await proxy.close()
  }

  function seen(members: readonly Driver[]): number {
    return new Set(members.flatMap(({ records }) => records.map(({ value }) => value))).size
  }
}

function ends(broker: Broker): number {
  return broker.describe(TOPIC).partitions.reduce((sum, { high }) => sum + high, 0)
}

function committed(broker: Broker): number {
  const { cursors } = broker.describeGroup(GROUP)
  return cursors.reduce((sum, { committed }) => sum + committed, 0)
}

/** Numbers from a seed: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Passes bytes on, until it breaks one of its connections. */
class Passage {
  target = 0
  broken = 0
  readonly #server: Server
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #timer: NodeJS.Timeout | undefined

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (client) => this.#pass(client))
  }

  static open(): Promise<Passage> {
    const server = createServer()
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve(new Passage(server)))
    })
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  startBreaking(random: () => number): void {
    const next = (): void => {
      this.#timer = setTimeout(
        () => {
          const pairs = [...this.#pairs]
          const pair = pairs[Math.floor(random() * pairs.length)]
          if (pair !== undefined) {
            this.broken++
            for (const socket of pair) socket.resetAndDestroy()
          }
          next()
        },
        30 + random() * 170,
      )
    }
    next()
  }

  stopBreaking(): void {
    clearTimeout(this.#timer)
  }

  close(): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  #pass(client: Socket): void {
    const server = connect(this.target, '127.0.0.1')
    const pair = [client, server] as const
    this.#pairs.add(pair)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => {})
      from.on('close', () => {
        this.#pairs.delete(pair)
        to.destroy()
      })
      from.pipe(to)
    }
  }
}
