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
  /** Partitions that a member of a group has now. */
  readonly assigned?: readonly number[]
  readonly done?: boolean
  readonly [name: string]: unknown
}

const DEADLINE_MS = 60_000
/** What happens in the broker rings no bell: it is looked at again so often. */
const LOOK_MS = 25
/** Until a client that was asked to end is killed. */
const PATIENCE_MS = 20_000
/** What is kept of the first, and of the last that a client says of its troubles: the cause is often said once, at the beginning. */
const WORDS = 4_000

export class Driver {
  readonly events: DriverEvent[] = []
  readonly records: Consumed[] = []
  /** Partitions that it has now, as far as it tells. */
  assigned: readonly number[] = []
  isDone = false
  readonly #child: ChildProcess
  readonly #ended: Promise<void>
  #pid: number | undefined
  #errors = ''
  #isOver = false
  wasKilled = false

  /** `onEvent` is told of every event and of the end. */
  constructor(command: readonly string[], args: readonly string[], onEvent: () => void) {
    const [program, ...rest] = command as [string, ...string[]]
    this.#child = spawn(program, [...rest, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, KAFKAJS_NO_PARTITIONER_WARNING: '1' },
    })
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = withoutMiddle(this.#errors + chunk.toString())
    })
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })
    lines.on('line', (line) => {
      if (!line.startsWith('{')) return
      this.#note(JSON.parse(line) as DriverEvent)
      onEvent()
    })
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        this.#isOver = true
        onEvent()
        resolve()
      }
      this.#child.on('close', end)
      this.#child.on('error', (error) => {
        this.#errors += String(error)
        end()
      })
    })
  }

  /** That it ends with an error is what is waited for. */
  mayFail = false

  get isOver(): boolean {
    return this.#isOver
  }

  get hasFailed(): boolean {
    return this.#isOver && !this.isDone && !this.wasKilled && !this.mayFail
  }

  /** SIGTERM asks it to end as a well-behaved program would. */
  async kill(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    this.wasKilled = true
    if (!this.#isOver) this.#signal(signal)
    const timer = setTimeout(() => this.#signal('SIGKILL'), PATIENCE_MS)
    await this.#ended
    clearTimeout(timer)
  }

  /** The last that it said, for whoever has to find out. */
  get lastWords(): string {
    const events = this.events.slice(-5).map((event) => JSON.stringify(event))
    return [...events, this.#errors].join('\n')
  }

  /** A driver that starts a program tells its id: killed means all of it; asked to end, it sees to that itself. */
  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#child.kill(signal)
    if (signal !== 'SIGKILL' || this.#pid === undefined) return
    try {
      process.kill(this.#pid, signal)
    } catch {
      // It has ended by itself.
    }
  }

  #note(event: DriverEvent): void {
    this.events.push(event)
    if (event.record !== undefined) this.records.push(event.record)
    if (event.assigned !== undefined) this.assigned = event.assigned
    if (typeof event.pid === 'number') this.#pid = event.pid
    if (event.done === true) this.isDone = true
  }
}

function withoutMiddle(text: string): string {
  return text.length <= 2 * WORDS ? text : `${text.slice(0, WORDS)}\n…\n${text.slice(-WORDS)}`
}

/** The clients of one trial, and waiting for what they and the broker come to. */
export class Drivers {
  readonly #all: Driver[] = []
  #wake: () => void = () => {}

  start(command: readonly string[], ...args: string[]): Driver {
    const driver = new Driver(command, args, () => this.#wake())
    this.#all.push(driver)
    return driver
  }

  /** Resolves once `isSo`; rejects when a client fails before, or after a minute. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const deadline = performance.now() + DEADLINE_MS
    while (!isSo()) {
      const failed = this.#all.find(({ hasFailed }) => hasFailed)
      if (failed !== undefined) throw new Error(`a client ended before ${what}\n${failed.lastWords}`)
      if (performance.now() > deadline) {
        const words = this.#all.map(({ lastWords }) => lastWords)
        throw new Error(`within ${DEADLINE_MS} ms it did not come to ${what}\n${words.join('\n')}`)
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOOK_MS)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Until it says that it is done; then it is ended. */
  async done(driver: Driver): Promise<Driver> {
    await this.until('being done', () => driver.isDone)
    await driver.kill('SIGTERM')
    return driver
  }

  /** Until it gives up by itself, with an error. */
  async given(driver: Driver): Promise<void> {
    driver.mayFail = true
    await this.until('an error of the client', () => driver.isOver)
    if (driver.isDone) throw new Error('the client was not refused')
  }

  async end(): Promise<void> {
    await Promise.all(this.#all.map((driver) => driver.kill()))
  }
}
