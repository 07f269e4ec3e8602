/** What `subscribe` answers: the caller's hold on one member of one reader. */
import type { Cursor } from '../core/cursor.ts'
import type { Member } from '../core/member.ts'
import type { Reader } from '../core/reader.ts'
import { checkOffset, invalid, signalOf } from '../core/settings.ts'
import { OdradekError } from '../model/errors.ts'
import { INSPECT } from '../model/inspect.ts'
import type { CloseOptions, Position } from '../model/options.ts'
import type { MemberDescription, ReaderDescription } from '../model/views.ts'
import { type Drain, drained, drainOf } from './drain.ts'
import { flushed } from './positions.ts'

/** What a subscription asks of the registry that made it. */
export interface SubscriptionHost {
  /** The member leaves; a broadcast reader keeps its place if it has a name. */
  leave(reader: Reader, member: Member): Promise<void>
  /** The reader is forgotten, with its place; of a group only the member goes. */
  forget(reader: Reader, member: Member): Promise<void>
}

export class Subscription implements AsyncDisposable {
  readonly #reader: Reader
  readonly #member: Member
  readonly #host: SubscriptionHost
  readonly #onEnd: () => void
  #closing: Promise<void> | undefined
  #resolveClosed: () => void = () => {}
  /** Resolves when the subscription has ended, whoever ended it. */
  readonly closed: Promise<void>

  /** @internal */
  constructor(reader: Reader, member: Member, host: SubscriptionHost, onEnd: () => void) {
    this.#reader = reader
    this.#member = member
    this.#host = host
    this.#onEnd = onEnd
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
    member.settings.signal?.addEventListener('abort', this.#abort, { once: true })
  }

  readonly #abort = (): void => {
    this.close().catch((error: unknown) => this.#reader.raise(error, `closing "${this.id}"`))
  }

  /** Id of the member: the one given, or a made-up one. */
  get id(): string {
    return this.#member.id
  }

  /** The group, where there is one. */
  get group(): string | undefined {
    return this.#reader.kind === 'broadcast' ? undefined : this.#reader.name
  }

  get paused(): boolean {
    return this.#member.paused
  }

  get ended(): boolean {
    return this.#closing !== undefined || this.#member.closed
  }

  /** Nothing more is delivered until `resume`; what is in flight goes on. */
  pause(): void {
    this.#member.pause(true)
  }

  resume(): void {
    this.#member.pause(false)
  }

  /** With `credit: 'manual'`: allows `n` more deliveries. */
  request(n: number): void {
    if (!Number.isSafeInteger(n) || n < 1)
      throw invalid(`request takes a whole number from 1 on; got ${String(n)}`)
    if (!this.#member.settings.manualCredit)
      throw invalid("request needs a subscription with credit: 'manual'")
    this.#member.request(n)
  }

  /** Resolves once every record accepted before this call is settled for the reader. */
  async drained(options?: { signal?: AbortSignal }): Promise<void> {
    const signal = signalOf(options?.signal)
    await Promise.all([...this.#reader.cursors()].map((cursor) => drainedNow(cursor, signal)))
  }

  /**
   * Resolves once the record at `position` is settled for the reader. The topic may be left out where the
   * subscription reads one.
   * @throws OdradekError INVALID_ARGUMENT for a topic or partition it does not read.
   */
  async waitFor(position: Position & { topic?: string }, options?: { signal?: AbortSignal }): Promise<void> {
    const { topic, partition, offset } = position
    checkOffset(offset)
    await this.#cursorAt(topic, partition).waitFor(offset + 1, signalOf(options?.signal))
  }

  #cursorAt(topic: string | undefined, partition: number): Cursor {
    const found = this.#reader.topics.filter((each) => topic === undefined || each.name === topic)
    const [only] = found
    if (only === undefined || found.length > 1) {
      throw invalid(
        `name one of the topics it reads: ${this.#reader.topics.map((each) => each.name).join(', ')}`,
      )
    }
    return this.#reader.cursorsOf(only.id)[only.partitionAt(partition).index] as Cursor
  }

  describe(): ReaderDescription & { readonly member: MemberDescription } {
    return { ...this.#reader.describe(), member: this.#member.describe() }
  }

  /**
   * Stops deliveries, lets what is in flight settle for `drainMs` at most, gives back the rest, and leaves.
   * A reader with a name keeps its place. A handler may call it, and await it: if it answers a promise, its own
   * delivery is not waited for and goes back with the rest.
   */
  close(options: CloseOptions = {}): Promise<void> {
    try {
      this.#closing ??= this.#close(drainOf(options))
      return this.#closing
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #close(drain: Drain): Promise<void> {
    this.#member.stop()
    await drained(this.#reader.ctx, this.#member.whenIdle(), drain)
    this.#member.releaseAll()
    try {
      await this.#host.leave(this.#reader, this.#member)
    } finally {
      this.#end()
    }
  }

  /** Ends at once and forgets the reader's place. What is in flight is fenced. A close that is under way goes first. */
  unsubscribe(): Promise<void> {
    this.#closing =
      this.#closing?.then(() => this.#host.forget(this.#reader, this.#member)) ?? this.#unsubscribe()
    return this.#closing
  }

  async #unsubscribe(): Promise<void> {
    this.#member.stop()
    this.#member.releaseAll()
    try {
      await this.#host.forget(this.#reader, this.#member)
    } finally {
      this.#end()
    }
  }

  /** The topic is gone, or the broker: nothing is left to leave. */
  endedByHost(): void {
    this.#member.stop()
    this.#member.releaseAll()
    this.#closing ??= Promise.resolve()
    this.#end()
  }

  #end(): void {
    this.#member.settings.signal?.removeEventListener('abort', this.#abort)
    this.#resolveClosed()
    this.#onEnd()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** @internal */
  [INSPECT](): string {
    const { group } = this
    const topics = this.#reader.topics.map(({ name }) => name).join(', ')
    const state = this.ended ? 'ended' : this.paused ? 'paused' : 'open'
    const of = group === undefined ? '' : ` of group "${group}"`
    return `Subscription "${this.id}"${of} { topics: [${topics}], ${state} }`
  }
}

/** What is not durable yet is waited for; what an open transaction keeps back is not. */
async function drainedNow(cursor: Cursor, signal: AbortSignal | undefined): Promise<void> {
  const { log } = cursor
  const { stable, high, end } = log.marks
  if (high === end) return cursor.waitFor(stable, signal)
  await flushed(log)
  return cursor.waitFor(stable < high ? stable : Math.min(end, log.marks.high), signal)
}

/** `isGroup`: a group of that name reads the topic, which was not what was asked for. */
export function unknownConsumer(name: string, topic: string, isGroup = false): OdradekError {
  return new OdradekError(
    'UNKNOWN_CONSUMER',
    isGroup
      ? `"${name}" is a group, not a reader or member: close its members, or forget it with deleteGroup("${name}")`
      : `"${name}" is no reader, group or member on topic "${topic}"`,
  )
}
