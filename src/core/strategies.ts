/**
 * How a shared group chooses the member that gets a record: the built-in delivery strategies.
 *
 * A strategy sees who could take the record now (`members`) and who is in the group (`state.all`), both in the
 * order of joining. It keeps its state by member id, so that it survives any change of membership, and
 * makes nothing per record.
 *
 *   round-robin       the next free member after the last one chosen
 *   least-in-flight   the free member with the fewest deliveries in hand, ties as round-robin
 *   weighted          in proportion to `weight`, as evenly spread as can be
 *   sticky-key        the member that the key belongs to, busy or not; keyless as round-robin
 */
import { OdradekError } from '../model/errors.ts'
import { hashKey } from '../model/key-hash.ts'
import type { DeliveryStrategy, MemberView, StrategyName } from '../model/options.ts'
import type { LogRecord } from '../model/record.ts'

type Members = readonly MemberView[]
interface GroupState {
  readonly all: Members
}

const BUILT_IN: Readonly<Record<StrategyName, () => DeliveryStrategy>> = {
  'round-robin': () => new RoundRobin(),
  'least-in-flight': () => new LeastInFlight(),
  weighted: () => new Weighted(),
  'sticky-key': () => new StickyKey(),
}

/** A strategy of its own for one group: no two groups share a turn. @throws OdradekError INVALID_ARGUMENT */
export function makeStrategy(name: StrategyName | DeliveryStrategy): DeliveryStrategy {
  if (typeof name === 'string' && Object.hasOwn(BUILT_IN, name)) return BUILT_IN[name]()
  if (typeof (name as DeliveryStrategy | null)?.select === 'function') return name as DeliveryStrategy
  throw new OdradekError(
    'INVALID_ARGUMENT',
    `strategy must be one of ${Object.keys(BUILT_IN).join(', ')}, or an object with a select method`,
  )
}

/** Whose turn it is. Remembers the last one chosen by id, and where it stood in case it is gone. */
class Turn {
  #lastId: string | undefined
  #lastIndex = -1

  /** The next of `members` after the last one chosen, of those with at most `maxInFlight` in hand. */
  next(members: Members, all: Members, maxInFlight: number): MemberView {
    let index = this.#lastPlace(all)
    for (let step = 0; step < all.length; step++) {
      index = index + 1 < all.length ? index + 1 : 0
      const member = all[index] as MemberView
      if (member.inFlight > maxInFlight) continue
      if (members.length < all.length && !members.includes(member)) continue
      this.#lastId = member.id
      this.#lastIndex = index
      return member
    }
    throw new Error('odradek: broken invariant: a member that could take the record is not in the group')
  }

  /** Where the last one stands now; when it left, just before the one that moved up into its place. */
  #lastPlace(all: Members): number {
    if (all[this.#lastIndex]?.id === this.#lastId) return this.#lastIndex
    const place = all.findIndex((member) => member.id === this.#lastId)
    return place >= 0 ? place : this.#lastIndex - 1
  }
}

class RoundRobin implements DeliveryStrategy {
  readonly #turn = new Turn()

  select(_record: LogRecord, members: Members, state: GroupState): MemberView {
    return this.#turn.next(members, state.all, Number.POSITIVE_INFINITY)
  }
}

class LeastInFlight implements DeliveryStrategy {
  readonly #turn = new Turn()

  select(_record: LogRecord, members: Members, state: GroupState): MemberView {
    let fewest = Number.POSITIVE_INFINITY
    for (const member of members) if (member.inFlight < fewest) fewest = member.inFlight
    return this.#turn.next(members, state.all, fewest)
  }
}

/** Smooth weighted round-robin: each free member earns its weight, the richest pays for all. */
class Weighted implements DeliveryStrategy {
  readonly #credits = new Map<string, { credit: number }>()

  select(_record: LogRecord, members: Members, state: GroupState): MemberView {
    let total = 0
    let chosen = members[0] as MemberView
    let richest = this.#account(chosen.id)
    for (const member of members) {
      const account = this.#account(member.id)
      account.credit += member.weight
      total += member.weight
      if (account.credit > richest.credit) {
        chosen = member
        richest = account
      }
    }
    richest.credit -= total
    if (this.#credits.size > state.all.length) this.#forgetStrangers(state.all)
    return chosen
  }

  #account(id: string): { credit: number } {
    let account = this.#credits.get(id)
    if (account === undefined) {
      account = { credit: 0 }
      this.#credits.set(id, account)
    }
    return account
  }

  #forgetStrangers(all: Members): void {
    const present = new Set(all.map((member) => member.id))
    for (const id of this.#credits.keys()) if (!present.has(id)) this.#credits.delete(id)
  }
}

/**
 * Rendezvous hashing: every member bids for the key, the highest bid wins. A member that leaves gives its
 * keys to the others evenly, one that joins takes an even share from each, and no other key moves.
 */
class StickyKey implements DeliveryStrategy {
  readonly #turn = new Turn()

  select(record: LogRecord, members: Members, state: GroupState): MemberView {
    if (record.key === null) return this.#turn.next(members, state.all, Number.POSITIVE_INFINITY)
    const keyHash = hashKey(record.key)
    let chosen = state.all[0] as MemberView
    let highest = -1
    for (const member of state.all) {
      const bid = scramble(keyHash ^ hashKey(member.id))
      if (bid > highest) {
        highest = bid
        chosen = member
      }
    }
    return chosen
  }
}

/** Spreads 32 bits over 32 bits, one to one, so that near hashes bid far apart. Not negative. */
function scramble(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
