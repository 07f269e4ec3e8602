/**
 * The brokers that are compared, each in a process of its own on loopback. Ours as anybody starts it, in memory and with a
 * directory; Apache Kafka as one node in KRaft mode, with the options of the Java machine that its own script gives it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './built.ts'
import { bringKafka, type Kafka, startKafka } from './kafka.ts'
import { atExit, BrokerProcess, freePort, notAtExit } from './process.ts'

export interface Contender {
  readonly name: string
  /** For people: what it runs on. */
  readonly about: string
  /** Configs of its topics that keep all that is sent for as long as a table is made. */
  readonly topicConfigs: Readonly<Record<string, string>>
  /** Its directory is fresh, and goes with `end`. */
  start(): Promise<Running>
}

export interface Running {
  readonly process: BrokerProcess
  end(): Promise<void>
}

export const MEMORY = 'odradek, memory'
export const FILE_OS = 'odradek, file, os'
export const FILE_FSYNC = 'odradek, file, fsync'

function odradek(name: string, durability: 'os' | 'fsync' | undefined): Contender {
  return {
    name,
    about: `Node ${process.version}`,
    topicConfigs: {
      'retention.bytes': '268435456',
      ...(durability === undefined ? { 'odradek.retention.records': '-1' } : {}),
    },
    async start() {
      const directory = freshDirectory()
      const port = await freePort()
      const data = durability === undefined ? [] : ['--data', directory, '--durability', durability]
      const main = fileURLToPath(new URL('dist/cli/main.js', root))
      const args = [main, 'serve', '--port', String(port), '--log-level', 'warn', ...data]
      return running(directory, () => BrokerProcess.start(port, { command: process.execPath, args }))
    },
  }
}

function kafkaContender(kafka: Kafka): Contender {
  return {
    name: kafka.name,
    about: `Java ${kafka.java}`,
    topicConfigs: { 'retention.bytes': '268435456' },
    async start() {
      const directory = freshDirectory()
      return running(directory, () => startKafka(directory))
    },
  }
}

async function running(directory: string, start: () => Promise<BrokerProcess>): Promise<Running> {
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  atExit(remove, remove)
  const started = await start()
  return {
    process: started,
    async end() {
      await started.stop()
      remove()
      notAtExit(remove)
    },
  }
}

function freshDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'odradek-bench-wire-'))
}

export interface Contenders {
  readonly ours: readonly Contender[]
  /** Why there is none, for people. */
  readonly kafka: Contender | string
}

/** `alone`: nobody else is looked for. */
export function contenders(alone: boolean): Contenders {
  const ours = [odradek(MEMORY, undefined), odradek(FILE_OS, 'os'), odradek(FILE_FSYNC, 'fsync')]
  if (alone) return { ours, kafka: 'not asked for' }
  const kafka = bringKafka()
  return { ours, kafka: typeof kafka === 'string' ? kafka : kafkaContender(kafka) }
}
