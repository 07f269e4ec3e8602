/**
 * The last requests that a server was asked, each a line of JSON, for whoever looks on from outside. Bytes are told by
 * their number alone: records may be large, and what a client sends to show who it is is nobody's to read.
 *
 *        last − length           last
 *   forgotten │ 17 │ 18 │ 19 │ … │ 516 │ to come
 *
 * A reader has no queue of its own: it goes on in this one, and one that is too slow is told how many it has missed.
 */
import { Deque } from '../core/deque.ts'
import type { ObservedRequest } from './faults.ts'

const MAX_REQUESTS = 1_000
const MAX_CHARS = 4 * 1024 * 1024
/** Of a request or its answer: fields and items. One with more of them is left off. */
const MAX_VALUES = 2_000

export interface Logged {
  readonly lines: readonly string[]
  /** Number of the last one. */
  readonly last: number
  /** Forgotten before they were asked for. */
  readonly missed: number
}

export class RequestLog {
  readonly #lines = new Deque<string>()
  #chars = 0
  #last = 0
  readonly #waiting = new Set<() => void>()

  add({ body, response, error, ...of }: ObservedRequest): void {
    const [request, answer] = [shown(body), shown(response)]
    const line = JSON.stringify({
      number: ++this.#last,
      ...of,
      durationMs: Math.round(of.durationMs * 1_000) / 1_000,
      request: request ?? null,
      response: answer ?? null,
      leftOff: request === undefined || answer === undefined,
      closed: error === undefined ? null : (error as Error).message,
    })
    this.#lines.push(line)
    this.#chars += line.length
    while (this.#lines.length > MAX_REQUESTS || this.#chars > MAX_CHARS) {
      this.#chars -= (this.#lines.shift() as string).length
    }
    for (const wake of this.#waiting) wake()
  }

  /** Those that came after that number. */
  after(number: number): Logged {
    const forgotten = this.#last - this.#lines.length
    const from = Math.min(Math.max(number, forgotten), this.#last)
    const lines = [...this.#lines].slice(from - forgotten)
    return { lines, last: this.#last, missed: Math.max(forgotten - number, 0) }
  }

  /** The same, and those to come, until the signal aborts. */
  async *follow(number: number, signal: AbortSignal): AsyncGenerator<string, void, void> {
    for (let at = number; !signal.aborted; ) {
      const { lines, last, missed } = this.after(at)
      at = last
      if (missed > 0) yield `${JSON.stringify({ missed })}\n`
      if (lines.length > 0) yield `${lines.join('\n')}\n`
      else await this.#more(signal)
    }
  }

  /** Numbers go on. */
  clear(): void {
    this.#lines.clear()
    this.#chars = 0
  }

  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake)
    })
  }
}

/** As JSON has it; undefined where it is too much. */
function shown(body: unknown): unknown {
  let left = MAX_VALUES
  const copy = (value: unknown): unknown => {
    left--
    if (left < 0 || typeof value !== 'object' || value === null) return value
    if (ArrayBuffer.isView(value)) return { sizeBytes: value.byteLength }
    if (Array.isArray(value)) return value.slice(0, left + 1).map(copy)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copy(each)]))
  }
  const all = copy(body)
  return left < 0 ? undefined : all
}
