/**
 * What outlives the process of the groups of Kafka's protocol, in `Meta`:
 *
 *   group/<name>               kind, generation or epoch, protocol type and name, since when it is empty; of a classic
 *                              generation that stands, its leader and how many are in it
 *   group-member/<name>/<id>   a member: what it said, and its place
 *
 * Invariants: what belongs together is put within one run to completion, so a crash keeps all of it or nothing. Whoever
 * is about to tell somebody of it waits for `saved`; what could not be stored is put again then, the newest of each
 * entry. A member's entry is written when the member changes, not when it is heard of, and nothing of others with it.
 *
 * Where the engine forgets with the process, nothing is stored, and nothing is waited for.
 */
import type { Engine, Meta, MetaChange } from '../log/contract.ts'
import type { StoredClassicMember } from './classic-member.ts'
import type { StoredModernMember } from './modern-member.ts'

const PREFIX = 'group/'
const MEMBER_PREFIX = 'group-member/'

export interface StoredGroup {
  /** Not said: a classic one. */
  readonly kind?: 'modern'
  /** Or epoch. */
  readonly generation: number
  readonly protocolType: string | null
  /** Of a classic generation. */
  readonly protocolName?: string | null
  /** Null: it had members. */
  readonly emptySince: number | null
  /** Of a classic generation whose leader has assigned. */
  readonly stands?: StandingGeneration
}

export interface StandingGeneration {
  readonly leader: string
  /** Members. Where fewer are found, somebody has left since. */
  readonly size: number
}

export type StoredMember = StoredClassicMember | StoredModernMember
/** By id. */
export type StoredMembers<M extends StoredMember = StoredMember> = ReadonlyMap<string, M>

/** A member, as far as the store is concerned. */
interface Keepable {
  readonly id: string
  readonly stored: StoredMember
}

interface Unsaved {
  /** The newest change of each entry, while it is not known to be stored. */
  readonly changes: Map<string, MetaChange>
  /** Rejects where any of what is under way is not stored. */
  saving: Promise<unknown> | null
}

export class GroupStore {
  readonly isDurable: boolean
  readonly #meta: Meta
  readonly #onError: (error: unknown, group: string) => void
  /** By name. */
  readonly #unsaved = new Map<string, Unsaved>()

  constructor({ meta, durable }: Engine, onError: (error: unknown, group: string) => void) {
    this.#meta = meta
    this.isDurable = durable
    this.#onError = onError
  }

  /** What the process before has left, by name. */
  *restored(): Generator<{ name: string; group: StoredGroup; members: StoredMembers }> {
    const byGroup = new Map<string, Map<string, StoredMember>>()
    for (const [key, value] of this.#meta.scan(MEMBER_PREFIX)) {
      const [, name, id] = key.split('/') as [string, string, string]
      const members = byGroup.get(name) ?? new Map<string, StoredMember>()
      byGroup.set(name, members.set(decodeURIComponent(id), value as StoredMember))
    }
    for (const [key, value] of this.#meta.scan(PREFIX)) {
      const name = key.slice(PREFIX.length)
      const members = byGroup.get(name) ?? new Map()
      yield { name: decodeURIComponent(name), group: value as StoredGroup, members }
    }
  }

  put(name: string, group: StoredGroup): void {
    this.#put(name, [[keyOf(name), group]])
  }

  keep(name: string, members: readonly Keepable[]): void {
    this.#put(
      name,
      members.map(({ id, stored }): MetaChange => [memberKeyOf(name, id), stored]),
    )
  }

  drop(name: string, memberId: string): void {
    this.#put(name, [[memberKeyOf(name, memberId), null]])
  }

  /** Of one without members. */
  remove(name: string): void {
    this.#put(name, [[keyOf(name), null]])
  }

  /** Resolves when all that was put of a group is stored, rejects where it cannot be; undefined where it is already. */
  saved(name: string): Promise<unknown> | undefined {
    const unsaved = this.#unsaved.get(name)
    if (unsaved === undefined) return undefined
    return unsaved.saving ?? this.#send(name, unsaved, [...unsaved.changes.values()])
  }

  #put(name: string, changes: readonly MetaChange[]): void {
    if (!this.isDurable || changes.length === 0) return
    const unsaved = this.#unsaved.get(name) ?? { changes: new Map<string, MetaChange>(), saving: null }
    this.#unsaved.set(name, unsaved)
    for (const change of changes) unsaved.changes.set(change[0], change)
    // Where something failed before, it goes along.
    void this.#send(name, unsaved, unsaved.saving === null ? [...unsaved.changes.values()] : changes)
  }

  #send(name: string, unsaved: Unsaved, changes: readonly MetaChange[]): Promise<unknown> {
    const storing = this.#meta.put(changes)
    const saving = unsaved.saving === null ? storing : both(unsaved.saving, storing)
    unsaved.saving = saving
    const isStored = (): void => {
      for (const change of changes) {
        if (unsaved.changes.get(change[0]) === change) unsaved.changes.delete(change[0])
      }
    }
    storing.then(isStored, () => undefined)
    const isOver = (): boolean => {
      if (unsaved.saving !== saving) return false
      unsaved.saving = null
      if (unsaved.changes.size === 0) this.#unsaved.delete(name)
      return true
    }
    saving.then(isOver, (error: unknown) => {
      // What was put at once fails at once, and is raised once.
      if (isOver()) this.#onError(error, name)
    })
    return saving
  }
}

/** Settles when both have; rejects where either does. */
async function both(first: Promise<unknown>, second: Promise<unknown>): Promise<void> {
  await Promise.allSettled([first, second])
  await first
  await second
}

function keyOf(name: string): string {
  return `${PREFIX}${encodeURIComponent(name)}`
}

function memberKeyOf(name: string, id: string): string {
  return `${MEMBER_PREFIX}${encodeURIComponent(name)}/${encodeURIComponent(id)}`
}
