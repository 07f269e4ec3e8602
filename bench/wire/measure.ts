/**
 * One turn of one broker: a fresh topic, the load for a while, and what it cost the broker's process. Bytes are those of
 * whole batches, as they lie in a log.
 */
import { type Template, template } from './batches.ts'
import { Connection } from './connection.ts'
import type { Contender, Running } from './contenders.ts'
import { fetchLoad, fill, produceLoad } from './loads.ts'
import type { BrokerProcess } from './process.ts'
import { createTopic, deleteTopic, endsOf, type Topic } from './topics.ts'

const CONNECTIONS = 4
/** What a topic holds that is read over and over: it is in everybody's memory. */
const FETCHED_BYTES = 64_000_000

/** Nanoseconds a byte: by the clock, and of the broker's processor time, which is seconds a gigabyte. */
export interface Cost {
  readonly wall: number
  readonly cpu: number
}

export interface Load {
  readonly valueBytes: number
  readonly partitions: number
  readonly turnMs: number
}

/** A broker that runs, with connections of the load generator to it. */
export class Stand {
  readonly contender: Contender
  readonly process: BrokerProcess
  readonly connections: readonly Connection[]
  readonly #running: Running

  private constructor(contender: Contender, running: Running, connections: readonly Connection[]) {
    this.contender = contender
    this.process = running.process
    this.connections = connections
    this.#running = running
  }

  static async open(contender: Contender): Promise<Stand> {
    const running = await contender.start()
    const { port } = running.process
    const opened = Array.from({ length: CONNECTIONS }, () => Connection.open(port))
    return new Stand(contender, running, await Promise.all(opened))
  }

  get control(): Connection {
    return this.connections[0] as Connection
  }

  async withTopic<T>(partitions: number, work: (topic: Topic) => Promise<T>): Promise<T> {
    const topic = await createTopic(this.control, partitions, this.contender.topicConfigs)
    const result = await work(topic)
    await deleteTopic(this.control, topic)
    return result
  }

  /** What the work cost that moved so many bytes. */
  async cost(work: () => Promise<number>): Promise<Cost> {
    const cpuBefore = this.process.cpuSeconds()
    const before = performance.now()
    const bytes = await work()
    const wallMs = performance.now() - before
    return { wall: (wallMs * 1e6) / bytes, cpu: ((this.process.cpuSeconds() - cpuBefore) * 1e9) / bytes }
  }

  async close(): Promise<void> {
    for (const connection of this.connections) connection.close()
    await this.#running.end()
  }
}

export function produceTurn(stand: Stand, { valueBytes, partitions, turnMs }: Load): Promise<Cost> {
  return stand.withTopic(partitions, async (topic) => {
    const batch = template(valueBytes, Date.now())
    let records = 0
    const cost = await stand.cost(async () => {
      const until = performance.now() + turnMs
      const moved = await produceLoad(stand.connections, topic, batch, () => performance.now() > until)
      records = moved.records
      return moved.bytes
    })
    await holds(stand, topic, records)
    return cost
  })
}

export function fetchTurn(stand: Stand, { valueBytes, partitions, turnMs }: Load): Promise<Cost> {
  return stand.withTopic(partitions, async (topic) => {
    const batch: Template = template(valueBytes, Date.now())
    await fill(stand.connections, topic, batch, FETCHED_BYTES)
    return stand.cost(async () => {
      const until = performance.now() + turnMs
      return (await fetchLoad(stand.connections, topic, batch, () => performance.now() > until)).bytes
    })
  })
}

/** Throws unless so many records were appended to it. */
export async function holds(stand: Stand, topic: Topic, records: number): Promise<void> {
  const total = (await endsOf(stand.control, topic)).reduce((sum, end) => sum + end, 0)
  if (total === records) return
  throw new Error(`${stand.contender.name}: ${total} records are there, and ${records} were sent`)
}
