/**
 * A broker's process from outside, the same for every broker: when it answers, what processor time and memory it took,
 * and its end. Processor time and memory are the system's own figures, of all its threads.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { apiVersions, metadata } from './built.ts'
import { Connection } from './connection.ts'

/** What /proc counts in, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4_096
const START_LIMIT_MS = 60_000
const STOP_LIMIT_MS = 20_000

const endings = new Map<object, () => void>()
process.on('exit', () => {
  for (const end of endings.values()) end()
})

/** What is left behind otherwise, if this process ends first. */
export function atExit(what: object, end: () => void): void {
  endings.set(what, end)
}

export function notAtExit(what: object): void {
  endings.delete(what)
}

export interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

export class BrokerProcess {
  readonly port: number
  /** From the start of the process until it had answered what a client asks first. */
  readonly startMs: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number, startMs: number) {
    this.#child = child
    this.port = port
    this.startMs = startMs
  }

  /** Starts it and waits until it answers ApiVersions and Metadata. What it says goes nowhere but into an error. */
  static async start(port: number, { command, args, env }: Program): Promise<BrokerProcess> {
    const startedAt = performance.now()
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        said = (said + chunk).slice(-4_000)
      })
    }
    atExit(child, () => child.kill('SIGKILL'))
    child.once('exit', () => notAtExit(child))
    const deadline = startedAt + START_LIMIT_MS
    while (!(await answers(port))) {
      if (child.exitCode !== null || performance.now() > deadline) {
        child.kill('SIGKILL')
        throw new Error(`${command} does not answer at port ${port}: ${said}`)
      }
      await sleep(1)
    }
    return new BrokerProcess(child, port, performance.now() - startedAt)
  }

  /** Seconds of user and system time up to now. */
  cpuSeconds(): number {
    const [, after = ''] = this.#proc('stat').split(') ')
    const fields = after.split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }

  /** Resident memory. */
  memoryBytes(): number {
    return Number(this.#proc('statm').split(' ')[1]) * PAGE_BYTES
  }

  #proc(name: string): string {
    return readFileSync(`/proc/${this.#child.pid}/${name}`, 'utf8')
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), STOP_LIMIT_MS)
    await ended
    clearTimeout(limit)
  }
}

/** Whether somebody at the port answers as a broker that a client can use. */
async function answers(port: number): Promise<boolean> {
  let connection: Connection | undefined
  try {
    connection = await Connection.open(port)
    await connection.ask(apiVersions, 3, { clientSoftwareName: 'bench', clientSoftwareVersion: '1' })
    const { brokers } = await connection.ask(metadata, 9, { topics: [], allowAutoTopicCreation: false })
    return brokers.length > 0
  } catch {
    // Not yet.
    return false
  } finally {
    connection?.close()
  }
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return address.port
}
