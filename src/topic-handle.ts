/** A topic in the caller's hands: publish, subscribe, stream, look. A thin door to the core's topic. */

import type { Subscription } from './coordinator/subscription.ts'
import type { RecordStream } from './core/stream.ts'
import type { Topic } from './core/topic.ts'
import { INSPECT } from './model/inspect.ts'
import type {
  BatchHandler,
  BatchSubscribeOptions,
  BatchSubscriber,
  Handler,
  PublishEntry,
  Published,
  PublishOptions,
  StreamOptions,
  SubscribeOptions,
  Subscriber,
} from './model/options.ts'
import type { TopicDescription } from './model/views.ts'

/** What a handle asks of its broker. */
export interface HandleHost {
  subscribeTo(topic: string, subscriber: unknown, options: object): Promise<Subscription>
  streamOf(topic: string, options: StreamOptions): RecordStream<unknown>
  describe(topic: string): TopicDescription
}

export class TopicHandle<T = unknown> {
  readonly #topic: Topic
  readonly #host: HandleHost

  /** @internal */
  constructor(topic: Topic, host: HandleHost) {
    this.#topic = topic
    this.#host = host
  }

  get name(): string {
    return this.#topic.name
  }

  /** Unique for ever: a topic that is deleted and created again has another one. */
  get id(): string {
    return this.#topic.id
  }

  get partitions(): number {
    return this.#topic.partitions.length
  }

  /** 0 to 1: the fullest partition's share held by gating readers, or waiting publishers over their limit. */
  get pressure(): number {
    return this.#topic.pressure
  }

  /**
   * Appends one record. Resolves with its position once it is accepted under the engine's durability; waits
   * for room where a gating reader is behind.
   * @throws OdradekError INVALID_VALUE, INVALID_ARGUMENT, UNKNOWN_TOPIC, FULL, TOO_LARGE, TOO_MANY_WAITING,
   * TIMEOUT, ABORTED, CLOSED
   */
  publish(value: T, options?: PublishOptions): Promise<Published> {
    return this.#topic.publish(value, options)
  }

  /** Appends now, or answers undefined when there is no room or others wait for it. Never waits. */
  tryPublish(value: T, options?: Omit<PublishOptions, 'signal'>): Published | undefined {
    return this.#topic.tryPublish(value, options)
  }

  /** Appends in order, all or nothing per partition (not overall); positions in the order given. */
  publishAll(entries: Iterable<PublishEntry<T>>, options?: { signal?: AbortSignal }): Promise<Published[]> {
    return this.#topic.publishAll(entries, options)
  }

  subscribe(
    subscriber: BatchHandler<T> | BatchSubscriber<T>,
    options: BatchSubscribeOptions,
  ): Promise<Subscription>
  subscribe(subscriber: Handler<T> | Subscriber<T>, options?: SubscribeOptions): Promise<Subscription>
  subscribe(subscriber: unknown, options: SubscribeOptions = {}): Promise<Subscription> {
    return this.#host.subscribeTo(this.name, subscriber, options)
  }

  /**
   * Records by `for await`. Asking for the next one acks the one before; leaving the loop releases the
   * current one and unsubscribes. An aborted signal ends the loop.
   */
  stream(options: StreamOptions = {}): RecordStream<T> {
    return this.#host.streamOf(this.name, options) as RecordStream<T>
  }

  describe(): TopicDescription {
    return this.#host.describe(this.name)
  }

  /** @internal */
  [INSPECT](): string {
    return `TopicHandle "${this.name}" { partitions: ${this.partitions}, id: ${this.id} }`
  }
}
