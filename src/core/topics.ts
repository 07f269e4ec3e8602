/**
 * The topics of a broker by name: creating, changing, deleting, and what is remembered of them in `Meta`.
 * One name is created once, however many ask at the same time. A deleted topic never comes back: one of
 * the same name has a new id and starts at 0.
 */
import type { Engine, MetaChange, PartitionLog } from '../log/contract.ts'
import { OdradekError } from '../model/errors.ts'
import type { TopicChanges, TopicOptions } from '../model/options.ts'
import type { ValueCodec } from '../model/value-codec.ts'
import { AgeDue } from './age-due.ts'
import type { CoreContext, TopicPort } from './context.ts'
import { checkTopicName, collisionKey, DLQ_PREFIX, showName } from './names.ts'
import { Partition } from './partition.ts'
import { restoreIds } from './restored-ids.ts'
import { invalid } from './settings.ts'
import { optionsOf, type StoredTopic, storedTopic } from './stored-topic.ts'
import { Topic } from './topic.ts'
import {
  type Cleaning,
  checkChanges,
  partitionCount,
  retentionLimits,
  type TopicSettings,
  topicSettings,
} from './topic-settings.ts'

const META_PREFIX = 'topic/'
/** What a face stores of a topic, by its id. It is put with the topic, and goes with it. */
export const FACE_PREFIX = 'kafka/config/'
/** What is put with a topic that is created, once its id is known. */
export type Besides = (topicId: string) => readonly MetaChange[]

const NOTHING: Besides = () => []

/** How logs are cleaned from now on, and what is put with it. */
export interface Reconfiguration {
  readonly cleaning: Cleaning
  readonly besides: readonly MetaChange[] | null
}

interface Remembered {
  readonly cleaning: Cleaning
  readonly besides: readonly MetaChange[]
  readonly partitions: number
  readonly deadLetter: boolean
}

/** What the layer above does when topics come, grow and go. */
export interface TopicHooks {
  created(topic: Topic): void
  grown(topic: Topic): void
  /** Before its logs are closed: subscriptions end. */
  deleted(topic: Topic, error: OdradekError): void
  /** Records that failed for good go there from now on. */
  receivesDeadLetters(topic: Topic): void
}

export class Topics implements TopicPort {
  readonly #engine: Engine
  readonly #byName = new Map<string, Topic>()
  readonly #byId = new Map<string, Topic>()
  /** Names that differ only in `.` and `_` would collide in metrics, as in Kafka. */
  readonly #byCollision = new Map<string, string>()
  readonly #creating = new Map<string, Promise<Topic>>()
  readonly #ages = new Map<Topic, AgeDue>()
  /** Settles with the last alteration. */
  #altered: Promise<unknown> = Promise.resolve()
  #ctx: CoreContext | undefined
  #hooks: TopicHooks | undefined
  #ended: OdradekError | undefined

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Ties the knot: the context has the topics, the topics need the context. */
  bind(ctx: CoreContext, hooks: TopicHooks): void {
    this.#ctx = ctx
    this.#hooks = hooks
  }

  get(name: string): Topic | undefined {
    return this.#byName.get(name)
  }

  byId(id: string): Topic | undefined {
    return this.#byId.get(id)
  }

  /** For all that does something with it. @throws OdradekError UNKNOWN_TOPIC, CLOSED */
  require(name: string): Topic {
    if (this.#ended !== undefined) throw this.#ended
    return this.look(name)
  }

  /** For who only looks, also once the broker is closed. @throws OdradekError UNKNOWN_TOPIC */
  look(name: string): Topic {
    const topic = this.#byName.get(name)
    if (topic !== undefined) return topic
    throw new OdradekError('UNKNOWN_TOPIC', `there is no topic ${showName(name)}; create it first`)
  }

  list(): Topic[] {
    return [...this.#byName.values()]
  }

  /** Creates, or answers the existing one when its settings are the same. */
  create<T>(name: string, options: TopicOptions<T>): Promise<Topic> {
    return this.#createOnce(name, this.settingsOf(name, options), name.startsWith(DLQ_PREFIX))
  }

  /** Creates. @throws OdradekError as `create`; TOPIC_EXISTS whatever the settings of that one */
  async createNew(name: string, options: TopicOptions, besides: Besides): Promise<Topic> {
    while (this.#creating.has(name)) await this.#creating.get(name)?.catch(() => undefined)
    this.assertFree(name)
    return this.#createOnce(name, this.settingsOf(name, options), name.startsWith(DLQ_PREFIX), { besides })
  }

  /** @throws OdradekError INVALID_TOPIC, TOPIC_EXISTS */
  assertFree(name: string): void {
    if (this.#byName.has(checkTopicName(name))) {
      throw new OdradekError('TOPIC_EXISTS', `topic "${name}" exists`)
    }
    this.#assertApart(name)
  }

  /** Those of a topic of that name, made with these options. @throws OdradekError as `create`, all but TOPIC_EXISTS */
  settingsOf<T>(name: string, options: TopicOptions<T>): TopicSettings {
    checkTopicName(name)
    const settings = topicSettings(options, this.#engine)
    if (name.startsWith(DLQ_PREFIX) && settings.cleanup === 'compact') throw compactedLetters(name)
    return settings
  }

  #assertApart(name: string): void {
    const collision = this.#byCollision.get(collisionKey(name))
    // Its own: it is being created, which whoever creates it again waits for.
    if (collision === undefined || collision === name) return
    throw new OdradekError(
      'INVALID_TOPIC',
      `"${name}" collides with the topic "${collision}": names may not differ in . and _ only`,
    )
  }

  async deadLetters(name: string): Promise<Topic> {
    const existing = this.#byName.get(name)
    const settings = topicSettings({}, this.#engine)
    const topic =
      existing ?? (await this.#createOnce(checkTopicName(name), settings, true, { anySettings: true }))
    if (topic.isDeadLetter) return topic
    if (topic.settings.cleanup === 'compact') throw compactedLetters(name)
    await this.#remember(topic, { deadLetter: true })
    this.#receivesDeadLetters(topic)
    return topic
  }

  #receivesDeadLetters(topic: Topic): void {
    topic.isDeadLetter = true
    this.#hooks?.receivesDeadLetters(topic)
  }

  async #createOnce(
    name: string,
    settings: TopicSettings,
    deadLetter: boolean,
    { anySettings = false, besides = NOTHING }: { anySettings?: boolean; besides?: Besides } = {},
  ): Promise<Topic> {
    if (this.#ended !== undefined) throw this.#ended
    const pending = this.#creating.get(name)
    if (pending !== undefined) await pending
    const existing = this.#byName.get(name)
    if (existing !== undefined) {
      if (!anySettings && existing.claim(settings)) await this.#remember(existing)
      return existing
    }
    this.#assertApart(name)
    this.#byCollision.set(collisionKey(name), name)
    const creation = this.#make(name, topicId(), settings, deadLetter, besides)
    this.#creating.set(name, creation)
    try {
      return await creation
    } catch (error) {
      this.#byCollision.delete(collisionKey(name))
      throw error
    } finally {
      this.#creating.delete(name)
    }
  }

  async #make(
    name: string,
    id: string,
    settings: TopicSettings,
    deadLetter: boolean,
    besides: Besides | null,
  ): Promise<Topic> {
    const ctx = this.#ctx as CoreContext
    const topic = new Topic(name, id, settings, ctx, deadLetter)
    for (let i = 0; i < settings.partitions; i++) this.#addPartition(topic, await this.#openLog(topic, i))
    if (besides === null) await restoreIds(topic, ctx)
    else await this.#remember(topic, { besides: besides(id) })
    if (this.#ended !== undefined) {
      topic.end(this.#ended)
      throw this.#ended
    }
    this.#byName.set(name, topic)
    this.#byId.set(id, topic)
    const age = new AgeDue(ctx, topic)
    this.#ages.set(topic, age)
    age.arm()
    this.#hooks?.created(topic)
    if (deadLetter) this.#receivesDeadLetters(topic)
    if (besides !== null) ctx.events.raise('topicCreated', { topic: name, topicId: id })
    return topic
  }

  #openLog(topic: Topic, partition: number, retention = topic.retention): Promise<PartitionLog> {
    const { cleanup, deleteRetentionMs } = topic.settings
    return this.#engine.openLog({
      topic: topic.name,
      topicId: topic.id,
      partition,
      retention,
      cleanup,
      deleteRetentionMs,
      codec: codecOf(topic),
    })
  }

  #addPartition(topic: Topic, log: PartitionLog): void {
    topic.addPartition(new Partition(topic, log.partition, log, this.#ctx as CoreContext))
  }

  /** As it is, but for what is said. */
  #remember(topic: Topic, changes: Partial<Remembered> = {}): Promise<void> {
    const { partitions = topic.partitions.length, deadLetter = topic.isDeadLetter, besides = [] } = changes
    const settings = { ...topic.settings, retention: topic.retention, ...changes.cleaning }
    const stored = storedTopic(topic.name, settings, partitions, settings.retention, deadLetter)
    return this.#engine.meta.put([[META_PREFIX + topic.id, stored], ...besides])
  }

  /** Opens what `Meta` remembers. Schema, codec and the like come back with the next `createTopic`. */
  async restore(): Promise<void> {
    for (const [key, value] of [...this.#engine.meta.scan(META_PREFIX)]) {
      const stored = value as StoredTopic
      const { name, deadLetter } = stored
      const settings = topicSettings(optionsOf(stored), this.#engine)
      this.#byCollision.set(collisionKey(name), name)
      const topic = await this.#make(name, key.slice(META_PREFIX.length), settings, deadLetter, null)
      topic.restored = true
    }
  }

  /** Alterations go one after the other, so that each sees what the one before did. */
  alter(name: string, changes: TopicChanges): Promise<void> {
    return this.#inTurn(() => this.#alter(name, changes))
  }

  #inTurn(alter: () => Promise<void>): Promise<void> {
    const altered = this.#altered.then(alter)
    this.#altered = altered.catch(() => undefined)
    return altered
  }

  /** All of it or nothing: partitions are opened and remembered before anybody sees them. */
  async #alter(name: string, changes: TopicChanges): Promise<void> {
    checkChanges(changes)
    const topic = this.require(name)
    const before = topic.partitions.length
    const retention = retentionLimits(changes.retention, topic.retention, this.#engine)
    const partitions = partitionCount(changes.partitions ?? before)
    if (partitions < before) {
      throw invalid(`"${name}" has ${before} partitions; they can be added, never removed`)
    }
    const logs: PartitionLog[] = []
    for (let i = before; i < partitions; i++) logs.push(await this.#openLog(topic, i, retention))
    if (!topic.ended) await this.#remember(topic, { partitions, cleaning: { ...topic.settings, retention } })
    if (topic.ended) {
      await Promise.all(logs.map(({ partition }) => this.#engine.deleteLog(topic.id, partition)))
      topic.assertOpen()
    }
    topic.retain(retention)
    this.#ages.get(topic)?.arm()
    for (const log of logs) this.#addPartition(topic, log)
    if (logs.length > 0) this.#hooks?.grown(topic)
  }

  /**
   * For a face: how logs are cleaned, and what it stores beside that. `ask` is called in turn, so that it sees what the
   * alteration before did. Without `besides` it is only checked.
   */
  reconfigure(name: string, ask: (topic: Topic) => Reconfiguration): Promise<void> {
    return this.#inTurn(async () => {
      const topic = this.require(name)
      const { cleaning, besides } = ask(topic)
      topicSettings(cleaning, this.#engine)
      if (topic.isDeadLetter && cleaning.cleanup === 'compact') throw compactedLetters(name)
      if (besides === null) return
      await this.#remember(topic, { cleaning, besides })
      topic.assertOpen()
      topic.clean(cleaning)
      this.#ages.get(topic)?.arm()
      // Open logs are answered again, under what is asked for now.
      await Promise.all(topic.partitions.map(({ index }) => this.#openLog(topic, index)))
      if (!topic.ended) return
      await Promise.all(topic.partitions.map(({ index }) => this.#engine.deleteLog(topic.id, index)))
      topic.assertOpen()
    })
  }

  async delete(name: string): Promise<void> {
    const topic = this.require(name)
    const error = new OdradekError('UNKNOWN_TOPIC', `topic "${name}" was deleted`)
    this.#byName.delete(name)
    this.#byId.delete(topic.id)
    this.#byCollision.delete(collisionKey(name))
    this.#stop(topic)
    // Publishers first: readers that go would let them in.
    topic.end(error)
    this.#hooks?.deleted(topic, error)
    // All in one run to completion: after a crash the topic is there as a whole, or nothing of it is.
    const forgotten = this.#engine.meta.put([
      [META_PREFIX + topic.id, null],
      [FACE_PREFIX + topic.id, null],
    ])
    const dropped = topic.partitions.map(({ index }) => this.#engine.deleteLog(topic.id, index))
    await Promise.all([forgotten, ...dropped])
    this.#ctx?.events.raise('topicDeleted', { topic: name, topicId: topic.id })
  }

  #stop(topic: Topic): void {
    const age = this.#ages.get(topic)
    if (age !== undefined) this.#ctx?.due.cancel(age)
    this.#ages.delete(topic)
  }

  /** Publishers that wait are told, and nothing is accepted any more. */
  end(error: OdradekError): void {
    this.#ended = error
    for (const topic of this.#byName.values()) topic.end(error)
  }

  /** Flushes and closes every log. What cannot be flushed keeps nothing from being closed. */
  async close(): Promise<void> {
    const topics = this.list()
    for (const topic of topics) this.#stop(topic)
    const logs = topics.flatMap((topic) => topic.partitions.map(({ log }) => log))
    await Promise.all(
      logs.map(async (log) => {
        await log.flush().catch((error: unknown) => this.#ctx?.events.error(error, 'flushing a log'))
        await log.close()
      }),
    )
  }
}

/** Letters are told apart by where they failed, not by their keys. */
function compactedLetters(name: string): OdradekError {
  return invalid(`"${name}" takes dead letters, so it cannot be compacted`)
}

/** The codec that the topic has when it is asked: one that comes back gets its own with the next `createTopic`. */
function codecOf(topic: Topic): ValueCodec {
  return {
    encode: (value) => topic.settings.codec.encode(value),
    decode: (bytes, contentType) => topic.settings.codec.decode(bytes, contentType),
  }
}

/** 128 random bits in base64url, the form of Kafka's topic ids. */
function topicId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .slice(0, 22)
}
