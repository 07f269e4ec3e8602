/**
 * What is done in which order. Lives come first, each broker alone on the machine; then all brokers stand beside each
 * other, and take turns until the end.
 *
 *   lives         A, end  B, end  C, end  A, end …
 *   loads         for each load:  A B C D  A B C D  A B C D
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Table } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import { batchOf } from './batches.ts'
import { type Contender, FILE_FSYNC } from './contenders.ts'
import { kcatTurn, kcatVersion, linesOf, rdkafkaMissing, rdkafkaRoundTrips } from './librdkafka.ts'
import { live } from './lives.ts'
import { roundTrips } from './loads.ts'
import { type Cost, fetchTurn, produceTurn, Stand } from './measure.ts'
import {
  CELLS,
  type Cell,
  type Field,
  keyOf,
  librdkafkaTables,
  lifeTable,
  loadTables,
  roundTripTable,
} from './tables.ts'

export const PARTS = ['lives', 'loads', 'librdkafka', 'round-trips'] as const
export type Part = (typeof PARTS)[number]

/** How long to look. */
export interface Plan {
  readonly rounds: number
  readonly turnMs: number
  /** Of each load on each broker, before anything counts. */
  readonly warmMs: number
  readonly lives: number
  readonly restMs: number
  readonly connections: number
  readonly kcatBytes: number
  readonly roundTrips: number
}

export class Run {
  readonly samples: { [key: string]: number[] } = {}
  readonly #all: readonly Contender[]
  readonly #ours: readonly Contender[]
  readonly #kafka: Contender | undefined
  readonly #plan: Plan
  #stands: Stand[] = []

  constructor(ours: readonly Contender[], kafka: Contender | undefined, plan: Plan) {
    this.#ours = ours
    this.#kafka = kafka
    this.#all = kafka === undefined ? ours : [...ours, kafka]
    this.#plan = plan
  }

  async part(part: Part): Promise<Table[]> {
    if (part === 'lives') return this.#lives()
    if (this.#stands.length === 0) {
      for (const contender of this.#all) this.#stands.push(await Stand.open(contender))
    }
    switch (part) {
      case 'loads':
        return this.#loads()
      case 'librdkafka':
        return this.#librdkafka()
      default:
        return this.#roundTrips()
    }
  }

  async close(): Promise<void> {
    for (const stand of this.#stands) await stand.close()
    this.#stands = []
  }

  #sample(key: string, figure: number): void {
    this.samples[key] ??= []
    this.samples[key].push(figure)
  }

  #cost({ name }: Contender, cell: Cell, what: string, { wall, cpu }: Cost): void {
    this.#sample(keyOf(name, cell, what), wall)
    this.#sample(keyOf(name, cell, `${what} CPU`), cpu)
  }

  #field(left: readonly string[] = []): Field {
    const ours = this.#ours.map(({ name }) => name).filter((name) => !left.includes(name))
    return { ours, kafka: this.#kafka?.name }
  }

  /** All of them, or without those that are left out. */
  #turns(left: readonly string[] = []): Stand[] {
    return this.#stands.filter(({ contender }) => !left.includes(contender.name))
  }

  async #lives(): Promise<Table[]> {
    const { lives, restMs, connections } = this.#plan
    for (let round = 0; round < lives; round++) {
      for (const contender of this.#all) {
        const { startMs, idleMiB, connectedMiB } = await live(contender, restMs, connections)
        this.#sample(`${contender.name}: start`, startMs)
        this.#sample(`${contender.name}: idle`, idleMiB)
        this.#sample(`${contender.name}: with ${connections} connections`, connectedMiB)
      }
    }
    return [lifeTable(this.#field(), connections)]
  }

  async #loads(): Promise<Table[]> {
    const { rounds, turnMs, warmMs } = this.#plan
    for (const cell of CELLS) {
      for (let round = warmMs > 0 ? -1 : 0; round < rounds; round++) {
        const load = { ...cell, turnMs: round < 0 ? warmMs : turnMs }
        for (const stand of this.#turns()) {
          const produced = await produceTurn(stand, load)
          if (round >= 0) this.#cost(stand.contender, cell, 'produce', produced)
        }
        for (const stand of this.#turns()) {
          const fetched = await fetchTurn(stand, load)
          if (round >= 0) this.#cost(stand.contender, cell, 'fetch', fetched)
        }
      }
    }
    return loadTables(this.#field())
  }

  async #librdkafka(): Promise<Table[]> {
    if (typeof kcatVersion() === 'string') return []
    const { rounds, turnMs, kcatBytes } = this.#plan
    const directory = mkdtempSync(join(tmpdir(), 'odradek-bench-lines-'))
    for (const cell of CELLS) {
      const lines = linesOf(join(directory, 'lines'), cell.valueBytes, kcatBytes)
      for (let round = 0; round < rounds; round++) {
        for (const stand of this.#turns([FILE_FSYNC])) {
          const { produce, consume } = await kcatTurn(stand, { ...cell, turnMs }, lines)
          this.#cost(stand.contender, cell, 'kcat produce', produce)
          this.#cost(stand.contender, cell, 'kcat consume', consume)
        }
      }
    }
    rmSync(directory, { recursive: true })
    return librdkafkaTables(this.#field([FILE_FSYNC]))
  }

  async #roundTrips(): Promise<Table[]> {
    const { rounds, roundTrips: count } = this.#plan
    const batch = batchOf([Buffer.alloc(100)], Date.now())
    const kinds = ['frames', ...(rdkafkaMissing() === undefined ? ['librdkafka'] : [])]
    const took = async (stand: Stand, kind: string): Promise<number[]> => {
      if (kind === 'librdkafka') return rdkafkaRoundTrips(stand, count)
      const [producer, consumer] = stand.connections as [Stand['control'], Stand['control']]
      return stand.withTopic(1, (topic) => roundTrips(producer, consumer, topic, batch, count))
    }
    for (const kind of kinds) {
      for (let round = 0; round < rounds; round++) {
        for (const stand of this.#turns()) {
          const all = await took(stand, kind)
          this.#sample(`${stand.contender.name}: ${kind} p50`, quantile(all, 0.5))
          this.#sample(`${stand.contender.name}: ${kind} p99`, quantile(all, 0.99))
        }
      }
    }
    return [roundTripTable(this.#field(), kinds)]
  }
}
