/**
 * Dead letters on their way back. Per dead-letter topic it remembers which letters were sent back: an
 * offset below which all were, and those beyond it (a filter leaves gaps). A letter is marked after its copy
 * was accepted, never deleted, and one that retention takes before it was ever sent back is raised.
 */
import type { CoreContext } from '../core/context.ts'
import {
  DLQ_GROUP_HEADER,
  DLQ_TOPIC_HEADER,
  isDeadLetterHeader,
  REDRIVE_COUNT_HEADER,
  REDRIVE_READER_HEADER,
} from '../core/dead-letter.ts'
import { UNDECODED_HEADER } from '../core/encode.ts'
import type { Partition } from '../core/partition.ts'
import { count, invalid, known, positive, signalOf } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import type { Topics } from '../core/topics.ts'
import type { Engine, MetaChange } from '../log/contract.ts'
import { abortedError, OdradekError } from '../model/errors.ts'
import type { RedriveOptions } from '../model/options.ts'
import type { LogRecord, RecordHeaders } from '../model/record.ts'
import { readRecords } from './read.ts'

const META_PREFIX = 'redrive/'
const READ_RECORDS = 256

export interface RedriveResult {
  /** Letters sent back by this call. */
  readonly redriven: number
  /** Letters that stay: the filter left them out, or their topic is gone. */
  readonly kept: number
}

interface StoredMarks {
  readonly offset: number
  readonly beyond: readonly number[]
}

/** Which letters of one partition were sent back. */
class Marks {
  readonly key: string
  readonly #beyond = new Set<number>()
  #offset = 0
  /** Letters below were looked at when retention took them. */
  evictedBelow: number
  /** The letter whose copy is on its way: it is not lost, even if the copy is quicker back than its mark. */
  underway: number = -1

  constructor(key: string, stored: StoredMarks | undefined, start: number) {
    this.key = key
    this.evictedBelow = start
    if (stored === undefined) return
    this.#offset = stored.offset
    for (const offset of stored.beyond) this.#beyond.add(offset)
  }

  has(offset: number): boolean {
    return offset < this.#offset || this.#beyond.has(offset)
  }

  add(offset: number): void {
    this.#beyond.add(offset)
    this.#settle()
  }

  /** Retention took everything below `start`; how many of those were never sent back. */
  evicted(start: number): number {
    let lost = 0
    for (let at = this.evictedBelow; at < start; at++) if (!this.has(at) && at !== this.underway) lost++
    this.evictedBelow = Math.max(this.evictedBelow, start)
    for (const offset of this.#beyond) if (offset < start) this.#beyond.delete(offset)
    this.#offset = Math.max(this.#offset, start)
    this.#settle()
    return lost
  }

  #settle(): void {
    while (this.#beyond.delete(this.#offset)) this.#offset++
  }

  stored(): StoredMarks {
    return { offset: this.#offset, beyond: [...this.#beyond] }
  }
}

export class Redrive {
  readonly #ctx: CoreContext
  readonly #engine: Engine
  readonly #topics: Topics
  readonly #marks = new Map<Partition, Marks>()
  readonly #running = new Set<Topic>()
  readonly #pauses = new Set<() => void>()

  constructor(ctx: CoreContext, engine: Engine, topics: Topics) {
    this.#ctx = ctx
    this.#engine = engine
    this.#topics = topics
  }

  /** Watches a dead-letter topic for letters that retention takes. */
  watch(topic: Topic): void {
    for (const partition of topic.partitions) {
      if (this.#marks.has(partition)) continue
      const key = `${META_PREFIX}${topic.id}/${partition.index}`
      const stored = this.#engine.meta.get(key) as StoredMarks | undefined
      const marks = new Marks(key, stored, partition.log.marks.start)
      this.#marks.set(partition, marks)
      partition.log.onAdvance(() => {
        if (partition.log.marks.start > marks.evictedBelow) this.#evicted(topic, partition, marks)
      })
    }
  }

  /** The topic is deleted, and with it goes what was stored of it. */
  unwatch(topic: Topic): void {
    const changes: MetaChange[] = []
    for (const partition of topic.partitions) {
      const marks = this.#marks.get(partition)
      if (marks === undefined) continue
      this.#marks.delete(partition)
      changes.push([marks.key, null])
    }
    if (changes.length === 0) return
    this.#engine.meta
      .put(changes)
      .catch((error: unknown) => this.#ctx.events.error(error, `forgetting the redrives of "${topic.name}"`))
  }

  #evicted(topic: Topic, partition: Partition, marks: Marks): void {
    const from = marks.evictedBelow
    const to = partition.log.marks.start
    const lost = marks.evicted(to)
    if (lost === 0) return
    this.#ctx.events.raise('dropped', {
      topic: topic.name,
      partition: partition.index,
      reader: null,
      count: lost,
      from,
      to,
      reason: 'dead-letter-evicted',
    })
  }

  /** Sends letters back to the topics they came from, oldest first per partition. */
  async run(name: string, given: RedriveOptions): Promise<RedriveResult> {
    const options = known('redrive', given, ['limit', 'filter', 'rate', 'toAll', 'signal'])
    signalOf(options.signal)
    const limit = count('limit', options.limit, Number.POSITIVE_INFINITY)
    const everyMs = 1000 / positive('rate', options.rate, Number.POSITIVE_INFINITY)
    const topic = this.#topics.require(name)
    if (!topic.isDeadLetter)
      throw invalid(`"${name}" is no dead-letter topic: nothing was ever dead-lettered to it`)
    if (this.#running.has(topic)) throw invalid(`a redrive of "${name}" is already running`)
    this.#running.add(topic)
    this.#ctx.dispatcher.activate()
    try {
      this.watch(topic)
      return await this.#run(topic, limit, everyMs, options)
    } finally {
      this.#running.delete(topic)
      this.#ctx.dispatcher.deactivate()
    }
  }

  async #run(topic: Topic, limit: number, everyMs: number, options: RedriveOptions): Promise<RedriveResult> {
    let redriven = 0
    let kept = 0
    for (const partition of topic.partitions) {
      const marks = this.#marks.get(partition) as Marks
      for await (const letter of lettersOf(partition)) {
        if (redriven === limit) break
        if (marks.has(letter.offset)) continue
        if (options.signal?.aborted === true) throw abortedError(options.signal, 'redrive')
        const toAll = options.toAll === true
        if (options.filter?.(letter) === false || !(await this.#sendBack(topic, letter, marks, toAll))) {
          kept++
          continue
        }
        redriven++
        await this.#engine.meta.put([[marks.key, marks.stored()]])
        if (everyMs > 0 && redriven < limit) await this.#pause(everyMs, options.signal)
      }
    }
    return { redriven, kept }
  }

  /** Whether the topic it came from took the copy. */
  async #sendBack(from: Topic, letter: LogRecord, marks: Marks, toAll: boolean): Promise<boolean> {
    const { headers } = letter
    const origin = headers.get(DLQ_TOPIC_HEADER)
    const topic = typeof origin === 'string' ? this.#topics.get(origin) : undefined
    if (topic === undefined) {
      const error = new OdradekError(
        'UNKNOWN_TOPIC',
        `dead letter ${letter.offset} came from "${origin}", which is gone`,
      )
      this.#ctx.logger.warn({ topic: letter.topic, offset: letter.offset }, error.message)
      return false
    }
    marks.underway = letter.offset
    try {
      const { value, key } = letter
      const copy = { from, value, key, headers: copyHeaders(headers, toAll) }
      await topic.publishAgain(copy, headers.has(UNDECODED_HEADER))
      marks.add(letter.offset)
    } finally {
      marks.underway = -1
    }
    return true
  }

  #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { due } = this.#ctx
    return new Promise((resolve) => {
      const done = (): void => {
        due.cancel(timer)
        signal?.removeEventListener('abort', done)
        this.#pauses.delete(done)
        resolve()
      }
      const timer = due.after(ms, done)
      this.#pauses.add(done)
      signal?.addEventListener('abort', done, { once: true })
    })
  }

  /** The broker closes: who paces a redrive goes on, and learns that nothing is accepted any more. */
  end(): void {
    for (const done of this.#pauses) done()
  }
}

/** What a partition holds now, page by page. */
async function* lettersOf(partition: Partition): AsyncGenerator<LogRecord> {
  const end = partition.log.marks.stable
  for (let at = partition.log.marks.start; at < end; ) {
    const page = await readRecords(partition, Math.max(at, partition.log.marks.start), end, READ_RECORDS)
    yield* page.records
    at = page.next
  }
}

function copyHeaders(headers: RecordHeaders, toAll: boolean): RecordHeaders {
  const times = Number(headers.get(REDRIVE_COUNT_HEADER) ?? 0) + 1
  const copy = headers.without(isDeadLetterHeader).with(REDRIVE_COUNT_HEADER, String(times))
  const reader = headers.get(DLQ_GROUP_HEADER)
  return toAll || typeof reader !== 'string' ? copy : copy.with(REDRIVE_READER_HEADER, reader)
}
