/**
 * Real clients whose connections break, whose members are killed, and whose server is killed and started anew from its disk,
 * judged by the history checker.
 *
 *   producers (idempotent) ──► passage, breaks every 30–200 ms ──┐
 *                                                                ├─► server, a process ──► a directory, scanned at the end
 *   members of a group ──► passage, breaks every 400–1,600 ms ───┘
 *
 * Members are left alone for longer: KafkaJS, which crashes and joins anew each time, would never have a group otherwise.
 * Every client says when it did what, by the clock that all processes of a machine share; the history is put together from
 * that afterwards (storm-history.ts). What breaks comes from the seed; what clients make of it is theirs.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBroker } from '../../src/index.ts'
import type { Anomaly } from '../../src/testing/history-anomalies.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'
import { CLIENTS, type KafkaClient } from './clients.ts'
import { type Driver, Drivers } from './driver.ts'
import { Passage } from './passage.ts'
import { historyOf, type Scan } from './storm-history.ts'
import { TOPIC, text } from './values.ts'

export interface StormOptions {
  readonly seed: number
  /** Of each producer. */
  readonly count: number
  /** Members that are killed, one after the other; another one comes for each. The server is killed as often, in between. */
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
const SERVER = [process.execPath, '--import', 'tsx', join(import.meta.dirname, 'storm-server.ts')]

/** Producers that are idempotent also when connections break, as far as they are here. */
export function producersHere(): KafkaClient[] {
  return CLIENTS.filter(({ id, missing }) => ['rdkafka', 'java'].includes(id) && missing() === undefined)
}

/** The server, which is another process each time that it was killed: the same directory, the same ports. */
class StormServer {
  readonly directory = mkdtempSync(join(tmpdir(), 'odradek-storm-'))
  readonly #drivers: Drivers
  readonly #passages: readonly Passage[]
  #process: Driver | undefined

  constructor(drivers: Drivers, passages: readonly Passage[]) {
    this.#drivers = drivers
    this.#passages = passages
  }

  async start(): Promise<void> {
    const listeners = this.#passages.map(({ target, port }) => ({ port: target, advertised: port }))
    const given = { directory: this.directory, listeners, topic: TOPIC, group: GROUP, partitions: PARTITIONS }
    const started = this.#drivers.start(SERVER, JSON.stringify(given))
    this.#process = started
    await this.#drivers.until('the server', () => started.events.length > 0)
    const ports = started.events[0]?.ports as number[]
    for (const [i, passage] of this.#passages.entries()) passage.target = ports[i] ?? 0
  }

  async kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#process?.kill(signal)
  }

  /** As it told last. */
  get told(): { ends: number; committed: number } {
    const { ends = 0, committed = 0 } = this.#process?.events.at(-1) ?? {}
    return { ends: Number(ends), committed: Number(committed) }
  }

  /** All that its logs have, once it is closed. */
  async scan(): Promise<Scan[]> {
    const broker = await openBroker(`file:${this.directory}`)
    try {
      const scans: Scan[] = []
      for (const { partition, high } of broker.describe(TOPIC).partitions) {
        const records = await broker.read(TOPIC, partition)
        const told = records.map(({ offset, value }) => ({ offset, value: text(value) }))
        scans.push({ partition, high, records: told })
      }
      return scans
    } finally {
      await broker.close()
    }
  }
}

export async function storm({ seed, count, kills }: StormOptions): Promise<StormResult> {
  const random = randomOf(seed)
  const [toProduce, toConsume] = [await Passage.open(), await Passage.open()]
  const drivers = new Drivers()
  const server = new StormServer(drivers, [toProduce, toConsume])
  const start = (client: KafkaClient, { bootstrap }: Passage, verb: string, args: object): Driver =>
    drivers.start(client.command, bootstrap, verb, JSON.stringify({ topic: TOPIC, ...args }))
  const worker = CLIENTS.find(({ id }) => id === 'kafkajs') as KafkaClient
  const work = (): Driver => start(worker, toConsume, 'work', { group: GROUP, sessionMs: 6_000 })
  try {
    await server.start()
    const members = [work(), work(), work()]
    const options = { count, idempotent: true, everyMs: EVERY_MS, timed: true }
    const producers = producersHere().map((client) =>
      start(client, toProduce, 'produce', { ...options, prefix: `${client.id}-` }),
    )
    const total = count * producers.length
    await drivers.until('members with partitions', () => members.some(({ assigned }) => assigned.length > 0))
    toProduce.startBreaking(random, [30, 200], () => server.told.ends)
    toConsume.startBreaking(random, [400, 1_600], () => seen(members))
    const steps = 2 * kills
    for (let step = 1; step <= steps; step++) {
      const share = (total * step) / (steps + 1)
      await drivers.until(`${share} records at the members`, () => seen(members) >= share)
      if (step % 2 === 1) {
        await (members[Math.floor(random() * members.length)] as Driver).kill('SIGKILL')
        members.push(work())
      } else {
        await server.kill('SIGKILL')
        await server.start()
      }
    }
    await drivers.until('the end of the producers', () => producers.every(({ isDone }) => isDone))
    toProduce.stopBreaking()
    toConsume.stopBreaking()
    await drivers.until('everything committed', () => {
      const { ends, committed } = server.told
      return ends >= total && committed === ends
    })
    const { ends } = server.told
    await Promise.all(members.map((member) => member.kill('SIGKILL')))
    await server.kill('SIGTERM')
    const scans = await server.scan()
    const history = historyOf({ seed, topic: TOPIC, group: GROUP, producers, members, scans })
    const broken = toProduce.broken + toConsume.broken
    return { anomalies: checkHistory(history), broken, records: ends }
  } finally {
    toProduce.stopBreaking()
    toConsume.stopBreaking()
    await drivers.end()
    await toProduce.close()
    await toConsume.close()
    rmSync(server.directory, { recursive: true, force: true })
  }
}

function seen(members: readonly Driver[]): number {
  return new Set(members.flatMap(({ records }) => records.map(({ value }) => value))).size
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
