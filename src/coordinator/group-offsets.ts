/**
 * The offsets of groups, for both sides: what a consumer commits by Kafka's protocol is where a group in this process
 * goes on, and the other way round.
 *
 *   a group with a reader here       its cursors say where it is; a commit moves them
 *   any other                        `Meta` does, under the keys that the reader would have
 *   in a transaction                 set aside, by producer, until it ends:
 *                                    txn-offset/<producer>/<group>/<topic id>/<partition>
 *
 * Both are `Meta`'s in memory too, so that there is one way, and a commit costs a map entry. While a group has members
 * here its cursors are its own: who may commit is for the caller to ask, `Groups` knows.
 *
 * Offsets go with their topic, with their group, and in the end by age: see group-expiry.ts.
 */
import { BROADCAST_PREFIX } from '../core/reader.ts'
import type { Engine, Meta, MetaChange } from '../log/contract.ts'
import type { Clock } from '../model/clock.ts'
import { type CommitNote, OFFSET_PREFIX, offsetKey, offsetsOf, type StoredOffset } from './offsets.ts'
import type { Readers } from './readers.ts'

export const PENDING_PREFIX = 'txn-offset/'

export interface PartitionRef {
  readonly topicId: string
  readonly partition: number
}

/** A commit of one partition. */
export interface OffsetEntry extends PartitionRef {
  /** Negative: none, so that whoever comes starts where it would without a commit. */
  readonly offset: number
  readonly metadata: string
  /** Leader epoch of the last record that was consumed, or −1. */
  readonly epoch: number
}

/** An offset as it was committed. `at`: by the wall clock; −1 where a reader of this process is there. */
export interface CommittedOffset extends OffsetEntry {
  readonly at: number
}

interface Pending {
  readonly key: string
  readonly group: string
  readonly entry: OffsetEntry
}

export class GroupOffsets {
  readonly #meta: Meta
  readonly #clock: Clock
  readonly #readers: Readers
  /** By producer. */
  readonly #pending = new Map<number, Map<string, Pending>>()
  /** Transactions that have set a place aside, by its key. */
  readonly #unstable = new Map<string, number>()

  constructor(engine: Engine, clock: Clock, readers: Readers) {
    this.#meta = engine.meta
    this.#clock = clock
    this.#readers = readers
  }

  /** What transactions had set aside, in the process before. */
  restore(): void {
    for (const [key, entry] of this.#meta.scan(PENDING_PREFIX)) {
      const [, producer, group] = key.split('/') as [string, string, string]
      this.#setAside(Number(producer), { key, group: decodeURIComponent(group), entry: entry as OffsetEntry })
    }
  }

  // ── committing ────────────────────────────────────────────────────────────────────────────────

  /** Stores all of it in one change; resolves when it is safe. */
  commit(group: string, entries: readonly OffsetEntry[]): Promise<void> {
    return this.#meta.put(this.#changes(group, entries))
  }

  #changes(group: string, entries: readonly OffsetEntry[]): MetaChange[] {
    const reader = this.#readers.group(group)
    return entries.map(({ topicId, partition, offset, metadata, epoch }): MetaChange => {
      const note: CommitNote = { metadata, epoch, at: this.#clock.now() }
      const cursor = reader?.cursorsOf(topicId)[partition]
      if (offset < 0 && cursor === undefined) return [offsetKey(group, topicId, partition), null]
      let at = offset
      if (cursor !== undefined) {
        // A reader is always inside its log.
        const { start, end } = cursor.log.marks
        at = Math.min(Math.max(offset, start), end)
        cursor.reset(at)
      }
      const stored: StoredOffset = { offset: at, settled: [], handed: at, starts: [], note }
      return [offsetKey(group, topicId, partition), stored]
    })
  }

  // ── in transactions ───────────────────────────────────────────────────────────────────────────

  /** Sets commits aside until the producer's transaction ends; resolves when that is safe. */
  pending(producerId: number, group: string, entries: readonly OffsetEntry[]): Promise<void> {
    const changes = entries.map((entry): MetaChange => {
      const { topicId, partition } = entry
      const key = `${PENDING_PREFIX}${producerId}/${encodeURIComponent(group)}/${topicId}/${partition}`
      this.#setAside(producerId, { key, group, entry })
      return [key, entry]
    })
    return this.#meta.put(changes)
  }

  /** The producer's transaction has ended: what it set aside is committed, or forgotten, in one change. */
  complete(producerId: number, commit: boolean): Promise<void> {
    const pending = [...(this.#pending.get(producerId)?.values() ?? [])]
    if (pending.length === 0) return Promise.resolve()
    const changes = this.#drop((_, producer) => producer === producerId)
    if (commit) {
      for (const { group, entry } of pending) changes.push(...this.#changes(group, [entry]))
    }
    // Subscribers may have waited for just that.
    for (const group of new Set(pending.map(({ group }) => group))) {
      this.#readers.group(group)?.remote?.changed()
    }
    return this.#meta.put(changes)
  }

  /** Whether a transaction that is open may change it. */
  isUnstable(group: string, { topicId, partition }: PartitionRef): boolean {
    return this.#unstable.has(offsetKey(group, topicId, partition))
  }

  hasPending(group: string): boolean {
    const prefix = offsetsOf(group)
    return [...this.#unstable.keys()].some((key) => key.startsWith(prefix))
  }

  #setAside(producerId: number, pending: Pending): void {
    const all = this.#pending.get(producerId) ?? new Map<string, Pending>()
    if (!all.has(pending.key)) this.#count(pending, 1)
    this.#pending.set(producerId, all.set(pending.key, pending))
  }

  #count({ group, entry }: Pending, change: 1 | -1): void {
    const key = offsetKey(group, entry.topicId, entry.partition)
    const count = (this.#unstable.get(key) ?? 0) + change
    if (count === 0) this.#unstable.delete(key)
    else this.#unstable.set(key, count)
  }

  /** Forgets what was set aside; answers the change of that. */
  #drop(isGone: (pending: Pending, producerId: number) => boolean): MetaChange[] {
    const changes: MetaChange[] = []
    for (const [producerId, all] of this.#pending) {
      for (const pending of all.values()) {
        if (!isGone(pending, producerId)) continue
        all.delete(pending.key)
        this.#count(pending, -1)
        changes.push([pending.key, null])
      }
      if (all.size === 0) this.#pending.delete(producerId)
    }
    return changes
  }

  // ── looking ───────────────────────────────────────────────────────────────────────────────────

  /** Undefined where nothing was committed. */
  committed(group: string, { topicId, partition }: PartitionRef): CommittedOffset | undefined {
    const stored = this.#meta.get(offsetKey(group, topicId, partition)) as StoredOffset | undefined
    const cursor = this.#readers.group(group)?.cursorsOf(topicId)[partition]
    const offset = cursor?.isPlaced === true ? cursor.position : stored?.offset
    if (offset === undefined) return undefined
    const note = stored?.offset === offset ? stored.note : undefined
    const at = note?.at ?? -1
    return { topicId, partition, offset, metadata: note?.metadata ?? '', epoch: note?.epoch ?? -1, at }
  }

  /** All of a group, by topic and partition. */
  all(group: string): CommittedOffset[] {
    const keys = new Set([...this.#meta.scan(offsetsOf(group))].map(([key]) => key))
    for (const { partition } of this.#readers.group(group)?.cursors() ?? []) {
      keys.add(offsetKey(group, partition.topic.id, partition.index))
    }
    return [...keys].flatMap((key) => this.committed(group, refOf(key)) ?? [])
  }

  /** What is stored of all groups. Readers that are no groups are not among them. */
  stored(): ReadonlyMap<string, readonly CommittedOffset[]> {
    const groups = new Map<string, CommittedOffset[]>()
    for (const [key] of this.#meta.scan(OFFSET_PREFIX)) {
      const name = decodeURIComponent(key.split('/')[1] as string)
      if (name.startsWith(BROADCAST_PREFIX)) continue
      const offsets = groups.get(name) ?? []
      offsets.push(this.committed(name, refOf(key)) as CommittedOffset)
      groups.set(name, offsets)
    }
    return groups
  }

  // ── forgetting ────────────────────────────────────────────────────────────────────────────────

  /** Also what transactions have set aside. */
  forget(group: string, refs: readonly PartitionRef[]): Promise<void> {
    const keys = new Set(refs.map(({ topicId, partition }) => offsetKey(group, topicId, partition)))
    const pending = this.#drop(({ group: of, entry }) =>
      keys.has(offsetKey(of, entry.topicId, entry.partition)),
    )
    return this.#meta.put([...[...keys].map((key): MetaChange => [key, null]), ...pending])
  }

  forgetGroup(group: string): Promise<void> {
    const changes = [...this.#meta.scan(offsetsOf(group))].map(([key]): MetaChange => [key, null])
    return this.#meta.put([...changes, ...this.#drop(({ group: of }) => of === group)])
  }

  forgetTopic(topicId: string): Promise<void> {
    const changes = [...this.#meta.scan(OFFSET_PREFIX)]
      .filter(([key]) => refOf(key).topicId === topicId)
      .map(([key]): MetaChange => [key, null])
    return this.#meta.put([...changes, ...this.#drop(({ entry }) => entry.topicId === topicId)])
  }
}

/** offset/<group>/<topic id>/<partition> */
function refOf(key: string): PartitionRef {
  const [, , topicId, partition] = key.split('/') as [string, string, string, string]
  return { topicId, partition: Number(partition) }
}
