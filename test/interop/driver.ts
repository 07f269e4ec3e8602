/**
 * A Kafka client in a process of its own: a small program for each client library (clients/), told by its command line
 * what to do and against which broker, which says on standard output what happened, a JSON object a line.
 *
 *   driver <bootstrap> <verb> <arguments as JSON>    ─►    {"record": …}  {"produced": …}  {"done": true}
 *
 * Verbs and their events are in clients/README.md. Only processes that were started here are ever ended.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** A record as drivers print it: key and value as text, a tombstone's value null. */
export interface Consumed {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: string | null
  readonly value: string | null
  readonly headers?: Readonly<Record<string, string>>
}

export interface DriverEvent {
  readonly record?: Consumed
  readonly done?: boolean
  readonly [name: string]: unknown
}

const DEADLINE_MS = 60_000

export class Driver {
  readonly events: DriverEvent[] = []
  readonly #child: ChildProcess
  readonly #ended: Promise<void>
  #errors = ''
  #wake: () => void = () => {}
  #over = false

  constructor(command: readonly string[], bootstrap: string, verb: string, args: object) {
    const [program, ...rest] = command as [string, ...string[]]
    this.#child = spawn(program, [...rest, bootstrap, verb, JSON.stringify(args)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, KAFKAJS_NO_PARTITIONER_WARNING: '1' },
    })
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-4_000)
    })
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })
    lines.on('line', (line) => {
      if (!line.startsWith('{')) return
      this.events.push(JSON.parse(line) as DriverEvent)
      this.#wake()
    })
    this.#ended = new Promise((resolve) => {
      this.#child.on('close', () => {
        this.#over = true
        this.#wake()
        resolve()
      })
    })
  }

  get records(): Consumed[] {
    return this.events.flatMap(({ record }) => (record === undefined ? [] : [record]))
  }

  /** Resolves once `isEnough` says so; rejects when the process ends before, or after a minute. */
  async until(isEnough: (driver: this) => boolean, what: string): Promise<void> {
    const deadline = performance.now() + DEADLINE_MS
    while (!isEnough(this)) {
      if (this.#over) throw new Error(`the client ended before ${what}\n${this.#tail()}`)
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) throw new Error(`no ${what} within ${DEADLINE_MS} ms\n${this.#tail()}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(leftMs, 1_000))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Runs to its end, and must have said that it is done. */
  async done(): Promise<DriverEvent[]> {
    await this.until(
      (driver) => driver.#over || driver.events.some(({ done }) => done === true),
      'being done',
    )
    if (!this.events.some(({ done }) => done === true)) throw new Error(`the client failed\n${this.#tail()}`)
    await this.kill('SIGTERM')
    return this.events
  }

  async kill(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    if (!this.#over) this.#child.kill(signal)
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000)
    await this.#ended
    clearTimeout(timer)
  }

  #tail(): string {
    return `${this.events
      .slice(-5)
      .map((event) => JSON.stringify(event))
      .join('\n')}\n${this.#errors}`
  }
}
