/**
 * Consuming as a member of a group: reads its share until the group rebalances, commits what was printed, joins again.
 * What is printed is committed once a second, before a rebalance, and at the end, when the member leaves.
 */
import { Fetcher, type FetcherOptions } from '../client/fetcher.ts'
import { GroupMember, type Membership } from '../client/group-member.ts'
import { committedOffsets } from '../client/group-offsets.ts'
import { placeKey, type TopicPartition } from '../client/offsets.ts'
import { OdradekError, odradekError } from '../model/errors.ts'
import type { Session } from './cluster-options.ts'
import type { Io } from './command.ts'
import type { Position } from './offset-range.ts'
import { boundsOf, offsetsAt } from './positions.ts'
import { say } from './printer.ts'
import type { RecordPrinter } from './record-printer.ts'

const SESSION_TIMEOUT_MS = 45_000
const REBALANCE_TIMEOUT_MS = 60_000
const HEARTBEAT_MS = 3_000
const COMMIT_EVERY_MS = 1_000

export interface AsMember {
  readonly group: string
  readonly topics: readonly string[]
  /** Where the group has not been yet. */
  readonly from: Position
  readonly formats: FetcherOptions
  /** Ends when all of its share has been read that was there when it began. */
  readonly untilEnd: boolean
}

type Place = TopicPartition & { readonly offset: number; readonly end: number | undefined }

/** Ends when it is interrupted, when enough is printed, or at the end of its share. @throws OdradekError */
export async function consumeAsMember(
  io: Io,
  session: Session,
  what: AsMember,
  printed: RecordPrinter,
  interrupted: AbortSignal,
): Promise<void> {
  const { cluster, clock } = session
  // Whether they are there is said before anybody joins.
  for (const topic of what.topics) await cluster.topic(topic)
  const member = new GroupMember(cluster, {
    group: what.group,
    topics: what.topics,
    clock,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    rebalanceTimeoutMs: REBALANCE_TIMEOUT_MS,
    heartbeatMs: HEARTBEAT_MS,
  })
  try {
    for (let isDone = false; !isDone && !interrupted.aborted; ) {
      const membership = await untilAborted(member.join(), interrupted)
      if (membership === undefined) break
      const share = new Share(member, membership, io)
      isDone = await share.read(session, what, printed, interrupted)
    }
  } finally {
    await leave(member, io)
  }
}

/** Who cannot say that it ends, ends all the same. */
async function leave(member: GroupMember, io: Io): Promise<void> {
  try {
    await member.leave()
  } catch (error) {
    const { message } = odradekError(error)
    const what = `the group was not told that this member ends, and waits ${SESSION_TIMEOUT_MS / 1_000} s for it`
    await say(io.stderr, `odradek: ${what}: ${message}`)
  }
}

/** The others of a group may take their time: who does not want to wait for them any more need not. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const aborted = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  // Nobody waits for it where the other one was first.
  work.catch(() => undefined)
  return Promise.race([work, aborted])
}

/** What one member reads between two rebalances. */
class Share {
  readonly #member: GroupMember
  readonly #membership: Membership
  readonly #io: Io
  /** Where the group goes on, of partitions in which something was printed since the last commit. */
  readonly #due = new Map<string, TopicPartition & { readonly offset: number }>()
  #committedMs: number

  constructor(member: GroupMember, membership: Membership, io: Io) {
    this.#member = member
    this.#membership = membership
    this.#io = io
    this.#committedMs = io.monotonic()
  }

  /** Whether there is nothing more to do for the member. */
  async read(
    session: Session,
    what: AsMember,
    printed: RecordPrinter,
    interrupted: AbortSignal,
  ): Promise<boolean> {
    const { revoked } = this.#membership
    const asked = session.cluster.patiently(() => this.#places(session, what), interrupted)
    const places = await untilAborted(asked, interrupted)
    if (places === undefined) return true
    const signal = AbortSignal.any([interrupted, revoked])
    // A member without partitions waits for some; at the end it has nothing to wait for.
    if (places.length === 0 && !what.untilEnd) await ended(signal)
    for await (const { topic, partition, records, next } of new Fetcher(
      session.cluster,
      places,
      what.formats,
    ).run(signal)) {
      const count = await printed.print(records)
      const last = records[count - 1]
      const offset = count === records.length ? next : last === undefined ? undefined : last.offset + 1
      if (offset !== undefined) this.#due.set(placeKey({ topic, partition }), { topic, partition, offset })
      if (this.#io.monotonic() - this.#committedMs >= COMMIT_EVERY_MS) await this.#commit()
      if (printed.isFull) break
    }
    await this.#commit()
    if (revoked.reason instanceof OdradekError) throw revoked.reason
    return !revoked.aborted || printed.isFull
  }

  async #places({ cluster }: Session, { group, from, formats, untilEnd }: AsMember): Promise<Place[]> {
    const { partitions } = this.#membership
    if (partitions.length === 0) return []
    const [committed, bounds] = await Promise.all([
      committedOffsets(cluster, group),
      boundsOf(cluster, partitions, formats.isolation),
    ])
    const begins = await offsetsAt(cluster, partitions, from, bounds)
    return partitions.map((place) => {
      const key = placeKey(place)
      const offset = committed.get(key)?.offset ?? begins.get(key) ?? 0
      return { ...place, offset, end: untilEnd ? bounds.ends.get(key) : undefined }
    })
  }

  async #commit(): Promise<void> {
    const due = [...this.#due.values()]
    this.#due.clear()
    this.#committedMs = this.#io.monotonic()
    if (await this.#member.commit(due)) return
    const what = 'the group went on without this member: what it printed last may be printed again'
    await say(this.#io.stderr, `odradek: ${what}`)
  }
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
