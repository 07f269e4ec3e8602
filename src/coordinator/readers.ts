/**
 * The one registry of who reads: broadcast readers by id, groups by name, patterns in a trie. Joining,
 * leaving, resuming, forgetting and replaying go through here, and only here.
 *
 *   subscribe ─► (positions, may wait) ─► reader, new or known ─► member ─► cursors ─► dispatcher
 *
 * Concurrency: everything after the positions are known runs to completion, so two members that join at
 * once see each other. A name belongs to one kind of reader; an empty group may be opened anew with
 * other settings and keeps its place.
 */
import type { CoreContext } from '../core/context.ts'
import type { Cursor } from '../core/cursor.ts'
import { DeadLetters } from '../core/dead-letter.ts'
import { Member } from '../core/member.ts'
import { BROADCAST_PREFIX, Reader, type ReaderKind } from '../core/reader.ts'
import { type CursorState, within, withoutStarts } from '../core/restored.ts'
import {
  assertSame,
  invalid,
  type MemberSettings,
  memberSettings,
  type ReaderSettings,
  readerSettings,
  sameSettings,
} from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import { checkPattern, isPattern, TopicTrie } from '../core/topic-trie.ts'
import type { TopicHooks, Topics } from '../core/topics.ts'
import { abortedError, OdradekError } from '../model/errors.ts'
import type { BatchSubscribeOptions, ReaderRef, StartPosition, SubscribeOptions } from '../model/options.ts'
import { type RemoteMembers, rebalance } from './consumer-group.ts'
import type { OffsetStore } from './offsets.ts'
import { areKept, resolvePositions } from './positions.ts'
import { ReaderExpiry } from './reader-expiry.ts'
import { findReader, freeId } from './reader-ref.ts'
import { type AnySubscriber, type Handler, handlerOf } from './subscriber.ts'
import { Subscription, type SubscriptionHost, unknownConsumer } from './subscription.ts'

export type AnyOptions = SubscribeOptions & Partial<Pick<BatchSubscribeOptions, 'batch'>>

/** Where a reader starts in topics it does not know, one offset per partition. */
type Starts = ReadonlyMap<Topic, readonly (number | undefined)[]>

interface Wildcard {
  readonly pattern: string
  readonly reader: Reader
  readonly member: Member
}

export class Readers implements Omit<TopicHooks, 'receivesDeadLetters'>, SubscriptionHost {
  readonly #ctx: CoreContext
  readonly #topics: Topics
  readonly #offsets: OffsetStore
  readonly #deadLetters: DeadLetters
  readonly #remote: () => RemoteMembers
  /** Broadcast readers; one id may be used once per topic. */
  readonly #broadcast = new Map<string, Set<Reader>>()
  readonly #groups = new Map<string, Reader>()
  readonly #anonymous = new Set<Reader>()
  readonly #patterns = new TopicTrie<Wildcard>()
  readonly #wildcards = new Map<Member, Wildcard>()
  readonly #subscriptions = new Map<Member, Subscription>()
  readonly #expiry: ReaderExpiry
  #names = 0
  /** The broker closes: whoever is still on the way in comes too late. */
  #stopped = false

  constructor(
    ctx: CoreContext,
    topics: Topics,
    offsets: OffsetStore,
    offsetRetentionMs: number,
    remote: () => RemoteMembers,
  ) {
    this.#ctx = ctx
    this.#topics = topics
    this.#offsets = offsets
    this.#expiry = new ReaderExpiry(ctx, offsetRetentionMs, (reader) => this.#forget(reader))
    this.#deadLetters = new DeadLetters(ctx)
    this.#remote = remote
  }

  *all(): IterableIterator<Reader> {
    for (const readers of this.#broadcast.values()) yield* readers
    yield* this.#groups.values()
    yield* this.#anonymous
  }

  group(name: string): Reader | undefined {
    return this.#groups.get(name)
  }

  // ── joining ───────────────────────────────────────────────────────────────────────────────────

  async subscribe(target: string, subscriber: AnySubscriber, options: AnyOptions): Promise<Subscription> {
    const handler = handlerOf(subscriber)
    const member = memberSettings(options)
    const settings = this.#fixedFor(options) ?? readerSettings(options)
    if (options.group?.startsWith(BROADCAST_PREFIX) === true) {
      throw invalid(`group names may not start with "${BROADCAST_PREFIX}", which files broadcast readers`)
    }
    if (settings.deadLetter === target && target !== undefined)
      throw invalid(`"${target}" cannot be its own dead-letter topic`)
    const pattern = isPattern(target)
    if (pattern) checkPattern(target)
    for (;;) {
      const topics = this.#matching(target, pattern)
      const starts = await this.#starts(topics, options, settings, pattern)
      if (this.#stopped) throw new OdradekError('CLOSED', 'the broker is closing')
      if (member.signal?.aborted === true) throw abortedError(member.signal, 'subscribe')
      const known = this.#known(options, topics, pattern)
      // While positions were looked up, the world may have moved; then look again.
      const moved = topics.some((topic) => {
        const positions = starts.get(topic)
        if (positions === undefined) return topic.ended || known?.reads(topic.id) !== true
        return topic.ended || !areKept(topic, positions)
      })
      if (moved) continue
      const reader =
        options.group === undefined
          ? this.#openBroadcast(options.id, settings, topics, pattern, known)
          : this.#openGroup(options.group, member, settings, options)
      return this.#join(reader, member, handler, topics, starts, pattern ? target : undefined)
    }
  }

  /** What the members that are there have fixed for those who join them. */
  #fixedFor({ group }: AnyOptions): ReaderSettings | undefined {
    const known = group === undefined ? undefined : this.#groups.get(group)
    return known === undefined || known.members.length === 0 ? undefined : known.settings
  }

  #matching(target: string, pattern: boolean): Topic[] {
    if (!pattern) return [this.#topics.require(target)]
    const trie = new TopicTrie<true>()
    trie.add(target, true)
    return this.#topics.list().filter((topic) => trie.match(topic.name).length > 0)
  }

  /** Positions in the topics that the reader does not know. */
  async #starts(
    topics: readonly Topic[],
    options: AnyOptions,
    settings: ReaderSettings,
    pattern: boolean,
  ): Promise<Starts> {
    const starts = new Map<Topic, readonly (number | undefined)[]>()
    const known = this.#known(options, topics, false)
    // A durable pattern that resumes: what it does not know was created after it left.
    const from: StartPosition = pattern && known?.members.length === 0 ? 'earliest' : settings.from
    for (const topic of topics) {
      if (known?.reads(topic.id) !== true) starts.set(topic, await resolvePositions(topic, from))
    }
    return starts
  }

  /** The reader that these options name, if it exists. */
  #known(options: AnyOptions, topics: readonly Topic[], pattern: boolean): Reader | undefined {
    if (options.group !== undefined) return this.#groups.get(options.group)
    if (options.id === undefined) return undefined
    const readers = [...(this.#broadcast.get(options.id) ?? [])]
    const found = readers.filter((reader) => topics.some((topic) => reader.reads(topic.id)))
    if (found.length > 1) throw this.#exists(options.id)
    return found[0] ?? (pattern ? readers.find((reader) => reader.topics.length === 0) : undefined)
  }

  #openBroadcast(
    id: string | undefined,
    settings: ReaderSettings,
    topics: readonly Topic[],
    pattern: boolean,
    known: Reader | undefined,
  ): Reader {
    if (id === undefined) {
      const reader = this.#make(`anonymous-${++this.#names}`, 'broadcast', false, settings)
      this.#anonymous.add(reader)
      return reader
    }
    if (known !== undefined) {
      if (known.members.length > 0) throw this.#exists(id)
      return this.#resume(known, settings, 'broadcast')
    }
    if (pattern && [...this.#wildcards.values()].some((each) => each.reader.name === id))
      throw this.#exists(id)
    const reader = this.#make(id, 'broadcast', true, settings)
    const readers = this.#broadcast.get(id) ?? new Set()
    this.#broadcast.set(id, readers.add(reader))
    this.#ctx.logger.debug(
      { reader: id, topics: topics.map((topic) => topic.name) },
      'a broadcast reader opens',
    )
    return reader
  }

  #exists(id: string): OdradekError {
    return new OdradekError(
      'CONSUMER_EXISTS',
      `"${id}" already reads here; close it first, or take another id`,
    )
  }

  #openGroup(name: string, member: MemberSettings, settings: ReaderSettings, options: AnyOptions): Reader {
    const kind: ReaderKind = settings.assignment === 'shared' ? 'share' : 'consumer'
    this.#remote().claim(name, kind)
    const known = this.#groups.get(name)
    if (known === undefined) {
      const reader = this.#make(name, kind, true, settings)
      this.#groups.set(name, reader)
      return reader
    }
    if (known.members.length === 0) return this.#resume(known, settings, kind)
    assertSame(name, known.settings, options)
    if (member.id !== undefined && known.members.some((each) => each.id === member.id)) {
      throw new OdradekError('CONSUMER_EXISTS', `group "${name}" has a member "${member.id}" already`)
    }
    return known
  }

  #make(name: string, kind: ReaderKind, durable: boolean, settings: ReaderSettings): Reader {
    return new Reader(this.#ctx, { name, kind, durable }, settings, this.#deadLetters)
  }

  /** A known reader gets its first member again: with other settings it is made anew in the same place. */
  #resume(known: Reader, settings: ReaderSettings, kind: ReaderKind): Reader {
    this.#expiry.cancel(known)
    if (sameSettings(known.settings, settings)) return known
    const reader = this.#make(known.name, kind, true, settings)
    reader.generation = known.generation
    for (const topic of known.topics) {
      const states = known.cursorsOf(topic.id).map((cursor) => withoutStarts(cursor.state()))
      reader.attach(topic, (i) => startAt(states[i] as CursorState))
      // Publishers that wait must not find a moment in between.
      reader.holdInstead(known, topic.id)
      known.detach(topic.id, new OdradekError('FENCED', `"${known.name}" was opened anew`))
    }
    if (kind === 'broadcast') this.#broadcast.get(known.name)?.delete(known)
    if (kind === 'broadcast') this.#broadcast.get(known.name)?.add(reader)
    else this.#groups.set(known.name, reader)
    return reader
  }

  #join(
    reader: Reader,
    settings: MemberSettings,
    handler: Handler,
    topics: readonly Topic[],
    starts: Starts,
    pattern: string | undefined,
  ): Subscription {
    const id =
      settings.id ?? (reader.kind === 'broadcast' ? reader.name : freeId(reader, () => ++this.#names))
    const member = new Member(reader, id, settings, handler.call, handler.isObject)
    for (const topic of topics) {
      member.topics.add(topic.id)
      this.#attach(reader, topic, starts.get(topic))
    }
    if (pattern !== undefined) {
      const wildcard = { pattern, reader, member }
      this.#wildcards.set(member, wildcard)
      this.#patterns.add(pattern, wildcard)
    }
    reader.join(member)
    this.#remote().joined(reader)
    rebalance(reader)
    const subscription = new Subscription(reader, member, this, () => this.#subscriptions.delete(member))
    this.#subscriptions.set(member, subscription)
    return subscription
  }

  /** A new reader starts where it asked to, one that is stored goes on. */
  #attach(reader: Reader, topic: Topic, positions: readonly (number | undefined)[] | undefined): void {
    reader.attach(topic, (partition) => {
      const { marks } = topic.partitionAt(partition).log
      const stored = reader.durable ? this.#offsets.load(reader.key, topic.id, partition) : undefined
      if (stored !== undefined) return startAt(within(stored, marks.end))
      // Partitions that a position does not name, or that came later, start at the tail, or their first record.
      const at = positions === undefined ? marks.start : (positions[partition] ?? marks.high)
      return { at, isPlaced: !this.#remote().reads(reader.key, topic.id, partition) }
    })
  }

  // ── topics come and go ────────────────────────────────────────────────────────────────────────

  created(topic: Topic): void {
    for (const { reader, member } of this.#patterns.match(topic.name)) {
      member.topics.add(topic.id)
      this.#attach(reader, topic, undefined)
      reader.membersChanged()
      rebalance(reader)
    }
  }

  grown(topic: Topic): void {
    for (const reader of this.all()) {
      if (!reader.reads(topic.id)) continue
      this.#attach(reader, topic, undefined)
      reader.membersChanged()
      rebalance(reader)
    }
  }

  deleted(topic: Topic, error: OdradekError): void {
    for (const reader of [...this.all()]) {
      if (!reader.reads(topic.id)) continue
      this.#forgetOffsets(reader.cursorsOf(topic.id))
      reader.detach(topic.id, error)
      for (const member of [...reader.members]) {
        if (member.topics.size > 0 || this.#wildcards.has(member)) continue
        reader.leave(member)
        this.#subscriptions.get(member)?.endedByHost()
      }
      reader.membersChanged()
      rebalance(reader)
      if (reader.topics.length === 0 && reader.members.length === 0) this.#remove(reader)
    }
  }

  // ── leaving ───────────────────────────────────────────────────────────────────────────────────

  async leave(reader: Reader, member: Member): Promise<void> {
    this.#part(reader, member)
    if (reader.members.length > 0 || this.#isGone(reader)) return
    if (!reader.durable) {
      await this.#forget(reader)
      return
    }
    const cursors = [...reader.cursors()]
    for (const cursor of cursors) cursor.rest()
    await this.#offsets.store(cursors)
    if (reader.members.length === 0) this.#expiry.begin(reader)
  }

  async forget(reader: Reader, member: Member): Promise<void> {
    const stays = reader.members.includes(member)
    if (stays) this.#part(reader, member)
    if (reader.members.length > 0) return
    if (reader.kind === 'broadcast') await this.#forget(reader)
    else if (stays && !this.#isGone(reader)) this.#expiry.begin(reader)
  }

  #part(reader: Reader, member: Member): void {
    const wildcard = this.#wildcards.get(member)
    if (wildcard !== undefined) {
      this.#patterns.remove(wildcard.pattern, wildcard)
      this.#wildcards.delete(member)
    }
    reader.leave(member)
    rebalance(reader)
  }

  /** Its group goes on without it, and may have another one since. */
  #isGone(reader: Reader): boolean {
    return reader.kind !== 'broadcast' && this.#groups.get(reader.name) !== reader
  }

  async #forget(reader: Reader): Promise<void> {
    const cursors = [...reader.cursors()]
    const error = new OdradekError('CLOSED', `"${reader.name}" was unsubscribed`)
    for (const topic of reader.topics) reader.detach(topic.id, error)
    this.#remove(reader)
    if (reader.durable) await this.#offsets.forget(cursors)
  }

  #forgetOffsets(cursors: readonly Cursor[]): void {
    this.#offsets
      .forget(cursors)
      .catch((error: unknown) => cursors[0]?.reader.raise(error, 'forgetting offsets'))
  }

  #remove(reader: Reader): void {
    this.#expiry.cancel(reader)
    this.#anonymous.delete(reader)
    if (this.#groups.get(reader.name) === reader) this.#groups.delete(reader.name)
    const readers = this.#broadcast.get(reader.name)
    if (readers?.delete(reader) === true && readers.size === 0) this.#broadcast.delete(reader.name)
  }

  /** @throws OdradekError UNKNOWN_CONSUMER when nobody of that name reads the topic. */
  async unsubscribe(topicName: string, id: string): Promise<void> {
    const topic = this.#topics.require(topicName)
    for (const reader of this.all()) {
      if (!reader.reads(topic.id)) continue
      const member = reader.members.find((each) => each.id === id && each.topics.has(topic.id))
      const subscription = member === undefined ? undefined : this.#subscriptions.get(member)
      if (subscription !== undefined) return subscription.unsubscribe()
      if (reader.kind === 'broadcast' && reader.name === id) return this.#forget(reader)
    }
    throw unknownConsumer(id, topicName, this.#groups.get(id)?.reads(topic.id))
  }

  /** Forgets a group and its offsets. @throws OdradekError UNKNOWN_CONSUMER, GROUP_NOT_EMPTY. */
  async deleteGroup(name: string): Promise<void> {
    const reader = this.#groups.get(name)
    if (reader === undefined) throw new OdradekError('UNKNOWN_CONSUMER', `there is no group "${name}"`)
    if (reader.members.length > 0) {
      throw new OdradekError(
        'GROUP_NOT_EMPTY',
        `group "${name}" has ${reader.members.length} members; close them first`,
      )
    }
    await this.#forget(reader)
  }

  /** A group without members gives up its name, and leaves its place behind. False where it has members. */
  release(name: string): boolean {
    const reader = this.#groups.get(name)
    if (reader === undefined) return true
    if (reader.members.length > 0) return false
    this.#offsets
      .leaveBehind(reader.cursors())
      .catch((error: unknown) => reader.raise(error, `storing the place of "${name}"`))
    const error = new OdradekError('INCONSISTENT_GROUP', `"${name}" is a group of Kafka's protocol now`)
    for (const topic of reader.topics) reader.detach(topic.id, error)
    this.#remove(reader)
    return true
  }

  // ── replay ────────────────────────────────────────────────────────────────────────────────────

  /** All partitions or none; what is in flight is fenced. */
  async resetOffset(topicName: string, ref: ReaderRef, to: StartPosition): Promise<void> {
    const topic = this.#topics.require(topicName)
    findReader(this.all(), topic, ref)
    let positions = await resolvePositions(topic, to)
    while (!areKept(topic, positions)) positions = await resolvePositions(topic, to)
    const reader = findReader(this.all(), topic, ref)
    if (reader.remote !== null) {
      throw new OdradekError(
        'GROUP_NOT_EMPTY',
        `group "${reader.name}" has members of Kafka's protocol; it is moved once they have left`,
      )
    }
    const moved: Cursor[] = []
    for (const cursor of reader.cursorsOf(topic.id)) {
      const at = positions[cursor.partition.index]
      if (at === undefined) continue
      cursor.reset(at)
      moved.push(cursor)
    }
    await this.#offsets.store(moved)
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  /** Nothing is handed out any more; what is in flight goes on. */
  stop(): void {
    this.#stopped = true
    for (const member of this.#subscriptions.keys()) member.stop()
  }

  /** Until nothing is in anybody's hands, and no dead letter is on its way. */
  async whenIdle(): Promise<void> {
    await Promise.all([...this.#subscriptions.keys()].map((each) => each.whenIdle()))
    await this.#deadLetters.whenSettled()
  }

  /** Deliveries that are still unsettled. */
  get inFlight(): number {
    let count = 0
    for (const reader of this.all()) for (const cursor of reader.cursors()) count += cursor.inFlight
    return count
  }

  async end(error: OdradekError): Promise<void> {
    for (const member of this.#subscriptions.keys()) member.releaseAll()
    for (const reader of this.all()) for (const cursor of reader.cursors()) cursor.rest()
    // What cannot be stored comes again; the rest of the broker must close all the same.
    await this.#offsets
      .flush()
      .catch((cause: unknown) => this.#ctx.events.error(cause, 'storing committed offsets'))
    for (const reader of this.all()) for (const topic of reader.topics) reader.detach(topic.id, error)
    for (const subscription of [...this.#subscriptions.values()]) subscription.endedByHost()
  }
}

function startAt(stored: CursorState): { at: number; stored: CursorState } {
  return { at: stored.offset, stored }
}
