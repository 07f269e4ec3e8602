/**
 * The broker: five verbs, and what stands around them. It owns nothing but the parts it is put together
 * from, and ties them to one another:
 *
 *   Broker ─► Topics ─► Partition ─► PartitionLog (the engine's)
 *      ├────► Readers ─► Reader ─► Cursor ─► Dispatcher
 *      ├────► OffsetStore ─► Meta (the engine's)
 *      └────► Redrive, transactions
 */
import type { BrokerParts } from './coordinator/broker-parts.ts'
import { type Drain, drained, drainOf } from './coordinator/drain.ts'
import { GroupOffsets } from './coordinator/group-offsets.ts'
import { Groups } from './coordinator/groups.ts'
import { OffsetStore } from './coordinator/offsets.ts'
import { ProducerTransactions } from './coordinator/producer-transactions.ts'
import { readRange } from './coordinator/read.ts'
import { type AnyOptions, Readers } from './coordinator/readers.ts'
import { Redrive, type RedriveResult } from './coordinator/redrive.ts'
import type { AnySubscriber } from './coordinator/subscriber.ts'
import type { Subscription } from './coordinator/subscription.ts'
import { runTransaction, type Transaction, type TransactionOptions } from './coordinator/transactions.ts'
import type { CoreContext } from './core/context.ts'
import { Dispatcher } from './core/dispatcher.ts'
import { DueQueue } from './core/due-queue.ts'
import { checkListener, Events, type Observer } from './core/events.ts'
import { loggerOf } from './core/logger.ts'
import { invalid, known, nonNegative, positive, signalOf } from './core/settings.ts'
import { RecordStream } from './core/stream.ts'
import type { Topic } from './core/topic.ts'
import { Topics } from './core/topics.ts'
import type { Engine } from './log/contract.ts'
import { encodeMarker } from './log/format/control.ts'
import { type Clock, SystemClock } from './model/clock.ts'
import type { Delivery } from './model/delivery.ts'
import { OdradekError } from './model/errors.ts'
import { INSPECT } from './model/inspect.ts'
import { DEFAULT_COMMIT_FLUSH_MS, DEFAULT_OFFSET_RETENTION_MS } from './model/limits.ts'
import type {
  BatchHandler,
  BatchSubscribeOptions,
  BatchSubscriber,
  CloseOptions,
  Handler,
  PublishEntry,
  Published,
  PublishOptions,
  ReaderRef,
  RedriveOptions,
  StartPosition,
  StreamOptions,
  SubscribeOptions,
  Subscriber,
  TopicChanges,
  TopicOptions,
} from './model/options.ts'
import type { LogRecord } from './model/record.ts'
import type {
  BrokerEvents,
  Logger,
  MetricsSnapshot,
  ReaderDescription,
  TopicDescription,
} from './model/views.ts'
import { TopicHandle } from './topic-handle.ts'

export interface BrokerOptions {
  /** pino's shape; `console` fits. Default: warnings and errors to `console`. */
  readonly logger?: Logger
  /** Time, for tests. Default: the system's. */
  readonly clock?: Clock
  /** 0 to 1, for jitter. Default `Math.random`. */
  readonly random?: () => number
  /** Milliseconds that settles are collected before they are stored, on durable engines. Default 50. */
  readonly commitFlushMs?: number
  /** Milliseconds a durable reader without members is remembered. Default 7 days. */
  readonly offsetRetentionMs?: number
}

/** What the composition root may plug in. */
export interface BrokerPlugs {
  /** Hears every lifecycle event, for diagnostics channels. */
  readonly observe?: Observer
}

/** Topic names and the types of their values. */
export type TopicMap = Record<string, unknown>

/** The values of a topic: as named by the map, else unknown. */
export type TopicValue<Topics extends object, Name> = Name extends keyof Topics ? Topics[Name] : unknown
/** The names a broker accepts: those of the map, or any where there is none. */
export type TopicName<Topics extends object> = string extends keyof Topics ? string : keyof Topics & string

export interface CloseResult {
  /** Deliveries that were in flight and unsettled when the drain ended. */
  readonly abandoned: number
}

const OPTIONS = ['logger', 'clock', 'random', 'commitFlushMs', 'offsetRetentionMs'] as const

export class Broker<Map extends object = TopicMap> implements AsyncDisposable {
  readonly #engine: Engine
  readonly #ctx: CoreContext
  readonly #topics: Topics
  readonly #readers: Readers
  readonly #offsets: OffsetStore
  readonly #groupOffsets: GroupOffsets
  readonly #groups: Groups
  readonly #transactions: ProducerTransactions
  readonly #redrive: Redrive
  readonly #events: Events
  #closing: Promise<CloseResult> | undefined

  /** @internal */
  constructor(engine: Engine, options: BrokerOptions = {}, plugs: BrokerPlugs = {}) {
    this.#engine = engine
    known('broker', options, OPTIONS)
    const clock = options.clock ?? new SystemClock()
    const logger = loggerOf(options.logger)
    const dispatcher = new Dispatcher(clock)
    this.#events = new Events(dispatcher, logger, plugs.observe)
    this.#topics = new Topics(engine)
    this.#offsets = new OffsetStore(
      engine,
      nonNegative('commitFlushMs', options.commitFlushMs, DEFAULT_COMMIT_FLUSH_MS),
    )
    const due = new DueQueue(clock, (error) => this.#events.error(error, 'a timer'))
    this.#ctx = {
      engine,
      clock,
      due,
      dispatcher,
      events: this.#events,
      logger,
      random: options.random ?? Math.random,
      commits: this.#offsets,
      topics: this.#topics,
    }
    const offsetRetentionMs = positive(
      'offsetRetentionMs',
      options.offsetRetentionMs,
      DEFAULT_OFFSET_RETENTION_MS,
    )
    this.#readers = new Readers(this.#ctx, this.#topics, this.#offsets, offsetRetentionMs, () => this.#groups)
    this.#groupOffsets = new GroupOffsets(engine, clock, this.#readers)
    this.#groups = new Groups(this.#ctx, this.parts, offsetRetentionMs)
    const { meta } = engine
    this.#transactions = new ProducerTransactions(this.#ctx, meta, this.#groupOffsets, encodeMarker)
    this.#redrive = new Redrive(this.#ctx, engine, this.#topics)
    this.#offsets.bind(this.#ctx)
    this.#topics.bind(this.#ctx, {
      created: (topic) => {
        this.#readers.created(topic)
        this.#groups.topicsChanged()
      },
      grown: (topic) => {
        this.#readers.grown(topic)
        this.#groups.topicsChanged()
        if (topic.isDeadLetter) this.#redrive.watch(topic)
      },
      deleted: (topic, error) => {
        this.#readers.deleted(topic, error)
        this.#groups.deleted(topic)
        this.#redrive.unwatch(topic)
      },
      receivesDeadLetters: (topic) => this.#redrive.watch(topic),
    })
  }

  /** @internal What the engine has to say that nobody waits for. `error` undefined: nothing failed. */
  report(error: unknown, what: string): void {
    if (error === undefined) this.#ctx.logger.warn({}, what)
    else this.#events.error(error, what)
  }

  /** @internal What faces are built on: a protocol needs the parts, where programs have the verbs. */
  get parts(): BrokerParts {
    return {
      engine: this.#engine,
      ctx: this.#ctx,
      topics: this.#topics,
      readers: this.#readers,
      offsets: this.#offsets,
      groups: this.#groups,
      groupOffsets: this.#groupOffsets,
      transactions: this.#transactions,
    }
  }

  /** Brings back what the engine remembers. Called once, by whoever opened the engine. */
  async restore(): Promise<void> {
    await this.#topics.restore()
    this.#groups.restore()
    this.#transactions.restore()
  }

  // ── topics ────────────────────────────────────────────────────────────────────────────────────

  /**
   * Creates a topic, or answers the existing one when it has the same settings.
   * @throws OdradekError INVALID_TOPIC, INVALID_ARGUMENT, TOPIC_EXISTS, CLOSED
   */
  async createTopic<T = never, Name extends TopicName<Map> = TopicName<Map>>(
    name: Name,
    options: TopicOptions<[T] extends [never] ? TopicValue<Map, Name> : T> = {},
  ): Promise<TopicHandle<[T] extends [never] ? TopicValue<Map, Name> : T>> {
    return new TopicHandle(await this.#topics.create(name, options), this.#host)
  }

  /** Changes retention, or adds partitions: those start at 0 for every reader, and keys move. */
  async alterTopic(name: TopicName<Map>, changes: TopicChanges): Promise<void> {
    await this.#topics.alter(name, changes)
  }

  /** Deletes topic and records. Waiting publishers reject, subscriptions end. */
  deleteTopic(name: TopicName<Map>): Promise<void> {
    return this.#topics.delete(name)
  }

  /** Names of all topics. */
  listTopics(): string[] {
    return this.#topics.list().map((topic) => topic.name)
  }

  /** A handle on an existing topic. @throws OdradekError UNKNOWN_TOPIC */
  topic<T = never, Name extends TopicName<Map> = TopicName<Map>>(
    name: Name,
  ): TopicHandle<[T] extends [never] ? TopicValue<Map, Name> : T> {
    return new TopicHandle(this.#topics.require(name), this.#host)
  }

  // ── publishing ────────────────────────────────────────────────────────────────────────────────

  /** See `TopicHandle.publish`. */
  publish<Name extends TopicName<Map>>(
    topic: Name,
    value: TopicValue<Map, Name>,
    options?: PublishOptions,
  ): Promise<Published> {
    const found = this.#topics.get(topic)
    return found === undefined ? Promise.reject(this.#unknown(topic)) : found.publish(value, options)
  }

  /** See `TopicHandle.tryPublish`. */
  tryPublish<Name extends TopicName<Map>>(
    topic: Name,
    value: TopicValue<Map, Name>,
    options?: Omit<PublishOptions, 'signal'>,
  ): Published | undefined {
    return this.#topics.require(topic).tryPublish(value, options)
  }

  /** See `TopicHandle.publishAll`. */
  async publishAll<Name extends TopicName<Map>>(
    topic: Name,
    entries: Iterable<PublishEntry<TopicValue<Map, Name>>>,
    options?: { signal?: AbortSignal },
  ): Promise<Published[]> {
    return this.#topics.require(topic).publishAll(entries, options)
  }

  #unknown(name: string): unknown {
    try {
      return this.#topics.require(name)
    } catch (error) {
      return error
    }
  }

  /**
   * Publishes and acks that take effect together or not at all, when `body` returns. A throw discards all.
   * @throws OdradekError FENCED when a delivery is no longer owned, TIMEOUT when there was no room
   */
  transaction<R>(body: (tx: Transaction) => Promise<R> | R, options: TransactionOptions = {}): Promise<R> {
    return runTransaction(this.#ctx, this.#topics, body, options)
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Subscribes to a topic, or to a pattern (`orders.*`: one level, `orders.#`: the rest). Every record
   * accepted after it resolves is seen.
   * @throws OdradekError UNKNOWN_TOPIC, CONSUMER_EXISTS, INCONSISTENT_GROUP, INVALID_ARGUMENT, OFFSET_OUT_OF_RANGE
   */
  subscribe<Name extends TopicName<Map> | (string & {})>(
    topic: Name,
    subscriber: BatchHandler<TopicValue<Map, Name>> | BatchSubscriber<TopicValue<Map, Name>>,
    options: BatchSubscribeOptions,
  ): Promise<Subscription>
  subscribe<Name extends TopicName<Map> | (string & {})>(
    topic: Name,
    subscriber: Handler<TopicValue<Map, Name>> | Subscriber<TopicValue<Map, Name>>,
    options?: SubscribeOptions,
  ): Promise<Subscription>
  subscribe(topic: string, subscriber: unknown, options: SubscribeOptions = {}): Promise<Subscription> {
    return this.#host.subscribeTo(topic, subscriber, options)
  }

  /** See `TopicHandle.stream`. */
  stream<Name extends TopicName<Map> | (string & {})>(
    topic: Name,
    options: StreamOptions = {},
  ): RecordStream<TopicValue<Map, Name>> {
    return this.#host.streamOf(topic, options) as RecordStream<TopicValue<Map, Name>>
  }

  /** Ends a subscription and forgets its place. @throws OdradekError UNKNOWN_TOPIC, UNKNOWN_CONSUMER */
  unsubscribe(topic: TopicName<Map>, id: string): Promise<void> {
    return this.#readers.unsubscribe(topic, id)
  }

  /** Forgets an empty group. @throws OdradekError UNKNOWN_CONSUMER, GROUP_NOT_EMPTY */
  deleteGroup(name: string): Promise<void> {
    return this.#groups.delete(name)
  }

  /**
   * Replay: moves a reader (an id, a group, or a member, which moves its group). What is in flight is fenced,
   * attempts start at 1, other readers are not touched. All partitions or none.
   * @throws OdradekError UNKNOWN_TOPIC, UNKNOWN_CONSUMER, OFFSET_OUT_OF_RANGE, INVALID_ARGUMENT
   */
  resetOffset(topic: TopicName<Map>, reader: ReaderRef, to: StartPosition): Promise<void> {
    return this.#readers.resetOffset(topic, reader, to)
  }

  /** Sends dead letters back to where they failed; only the reader that failed gets the copy, unless `toAll`. */
  redrive(deadLetterTopic: string, options: RedriveOptions = {}): Promise<RedriveResult> {
    return this.#redrive.run(deadLetterTopic, options)
  }

  /**
   * Records with `from ≤ offset < to`, without a reader. Default: all that is kept.
   * @throws OdradekError UNKNOWN_TOPIC, INVALID_ARGUMENT, OFFSET_OUT_OF_RANGE
   */
  async read<Name extends TopicName<Map>>(
    topic: Name,
    partition = 0,
    from?: number,
    to?: number,
  ): Promise<LogRecord<TopicValue<Map, Name>>[]> {
    const records = await readRange(this.#topics.require(topic), partition, from, to)
    return records as LogRecord<TopicValue<Map, Name>>[]
  }

  // ── looking ───────────────────────────────────────────────────────────────────────────────────

  /** @throws OdradekError UNKNOWN_TOPIC */
  describe(topic: TopicName<Map>): TopicDescription {
    return this.#describe(this.#topics.look(topic))
  }

  #describe(topic: Topic): TopicDescription {
    topic.expire()
    return {
      name: topic.name,
      id: topic.id,
      retention: topic.retention,
      partitions: topic.partitions.map((partition) => partition.describe()),
      pressure: topic.pressure,
      readers: [...this.#readers.all()]
        .filter((reader) => reader.reads(topic.id))
        .map((reader) => {
          const described = reader.describe()
          return { ...described, cursors: described.cursors.filter((cursor) => cursor.topic === topic.name) }
        }),
    }
  }

  /** @throws OdradekError UNKNOWN_CONSUMER */
  describeGroup(name: string): ReaderDescription {
    return this.#groups.describe(name)
  }

  listGroups(): string[] {
    return this.#groups.names()
  }

  /** A plain snapshot of everything: topics, partitions, readers, members, marks, counters, latencies. */
  metrics(): MetricsSnapshot {
    return {
      at: this.#ctx.clock.now(),
      topics: this.#topics.list().map((topic) => ({
        ...this.#describe(topic),
        published: topic.published,
        publishedBytes: topic.publishedBytes,
        duplicates: topic.duplicates,
        publishLatency: topic.publishLatency.snapshot(),
      })),
      readers: [...this.#readers.all()].map((reader) => reader.metrics()),
    }
  }

  /** Listens to lifecycle events; answers the way to stop. A listener that throws is logged. */
  on<Name extends keyof BrokerEvents>(name: Name, listener: (event: BrokerEvents[Name]) => void): () => void {
    checkListener(name, listener)
    return this.#events.emitter.on(name, listener)
  }

  once<Name extends keyof BrokerEvents>(
    name: Name,
    listener: (event: BrokerEvents[Name]) => void,
  ): () => void {
    checkListener(name, listener)
    return this.#events.emitter.once(name, listener)
  }

  off<Name extends keyof BrokerEvents>(name: Name, listener: (event: BrokerEvents[Name]) => void): void {
    this.#events.emitter.off(name, listener)
  }

  /** Resolves when nothing is deliverable, in flight, waiting or due. */
  idle(): Promise<void> {
    return this.#ctx.dispatcher.idle()
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Stops deliveries, lets what is in flight settle for `drainMs` at most (publishes and dead letters stay
   * allowed meanwhile), then rejects who waits, aborts signals, flushes, and closes the engine.
   */
  close(options: CloseOptions = {}): Promise<CloseResult> {
    try {
      this.#closing ??= this.#close(drainOf(options))
      return this.#closing
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #close(drain: Drain): Promise<CloseResult> {
    this.#readers.stop()
    this.#groups.end()
    await drained(this.#ctx, this.#readers.whenIdle(), drain)
    const abandoned = this.#readers.inFlight
    const error = new OdradekError('CLOSED', 'the broker is closed')
    this.#events.closing()
    try {
      this.#topics.end(error)
      this.#redrive.end()
      await this.#readers.end(error)
      await this.#topics.close()
    } finally {
      await this.#closeRest()
    }
    return { abandoned }
  }

  /** What must not stay open, whatever of it fails. */
  async #closeRest(): Promise<void> {
    try {
      await this.#engine.close()
    } finally {
      this.#events.flush()
      this.#ctx.dispatcher.close()
      this.#ctx.due.close()
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close().then(() => undefined)
  }

  /** @internal */
  [INSPECT](): string {
    const topics = this.#topics.list().length
    const readers = [...this.#readers.all()].length
    const state = this.#closing === undefined ? 'open' : 'closed'
    return `Broker ${this.#engine.scheme}: { topics: ${topics}, readers: ${readers}, ${state} }`
  }

  readonly #host = {
    subscribeTo: (topic: string, subscriber: unknown, options: object): Promise<Subscription> =>
      this.#readers.subscribe(topic, subscriber as AnySubscriber, options as AnyOptions),
    streamOf: (topic: string, options: StreamOptions): RecordStream<unknown> => this.#stream(topic, options),
    describe: (topic: string): TopicDescription => this.#describe(this.#topics.look(topic)),
  }

  #stream(topic: string, options: StreamOptions): RecordStream<unknown> {
    const { signal: given, ...rest } = options
    const signal = signalOf(given)
    if ('concurrency' in rest || 'ack' in rest || 'credit' in rest || 'batch' in rest) {
      throw invalid(
        'a stream hands out one record at a time and acks by itself; it has no ack, credit, concurrency or batch',
      )
    }
    return new RecordStream<unknown>(async (handler: (delivery: Delivery) => void, onEnd) => {
      const subscribe = { ...rest, ack: 'manual', credit: 'manual', concurrency: 1 }
      const subscription = await this.#host.subscribeTo(topic, handler, subscribe)
      void subscription.closed.then(onEnd)
      const keeps = options.id !== undefined || options.group !== undefined
      return {
        request: (n) => subscription.request(n),
        leave: () => (keeps ? subscription.close({ drainMs: 0 }) : subscription.unsubscribe()),
      }
    }, signal)
  }
}
