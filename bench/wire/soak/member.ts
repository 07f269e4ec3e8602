/**
 * A member of a classic group: joins, is given partitions, goes through them from what was committed, commits, and hears
 * by its heartbeats when it has to join again. After a while it leaves, or falls silent without a word.
 */
import { walk } from '../batches.ts'
import { fetch } from '../built.ts'
import { Connection } from '../connection.ts'
import { heartbeat, joinGroup, leaveGroup, offsetCommit, offsetFetch, syncGroup } from './built.ts'
import type { Ground } from './clients.ts'

const GROUP = 'soak'
const SESSION_TIMEOUT_MS = 6_000
const REBALANCE_TIMEOUT_MS = 2_000
const NONE = 0
const OFFSET_OUT_OF_RANGE = 1
const REBALANCE_IN_PROGRESS = 27
const MEMBER_ID_REQUIRED = 79
/** What a member is told that was too slow: it begins anew. ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID. */
const FENCED: ReadonlySet<number> = new Set([22, 25])

class Member {
  readonly #ground: Ground
  readonly #connection: Connection
  #memberId = ''
  #generation = -1
  #partitions: number[] = []
  #left: number

  constructor(ground: Ground, connection: Connection) {
    this.#ground = ground
    this.#connection = connection
    this.#left = 5 + ground.random(30)
  }

  /** One round: false when it is gone. */
  async step(): Promise<boolean> {
    if (this.#left-- <= 0) return this.#leave()
    if (this.#generation < 0) await this.#join()
    const { errorCode } = await this.#connection.ask(heartbeat, 3, this.#who)
    if (this.#isOut(errorCode)) return true
    for (const partition of this.#partitions) await this.#consume(partition)
    return true
  }

  get #who(): { groupId: string; generationId: number; memberId: string; groupInstanceId: null } {
    return { groupId: GROUP, generationId: this.#generation, memberId: this.#memberId, groupInstanceId: null }
  }

  /** Whether it has to join again. */
  #isOut(errorCode: number): boolean {
    if (errorCode === NONE) return false
    if (FENCED.has(errorCode)) this.#memberId = ''
    else if (errorCode !== REBALANCE_IN_PROGRESS) throw new Error(`group: error ${errorCode}`)
    this.#generation = -1
    return true
  }

  async #join(): Promise<void> {
    const answer = await this.#connection.ask(joinGroup, 5, {
      groupId: GROUP,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      rebalanceTimeoutMs: REBALANCE_TIMEOUT_MS,
      memberId: this.#memberId,
      groupInstanceId: null,
      protocolType: 'soak',
      protocols: [{ name: 'round-robin', metadata: Buffer.alloc(0) }],
    })
    this.#ground.tally.joins++
    if (answer.errorCode === MEMBER_ID_REQUIRED) {
      this.#memberId = answer.memberId
      return this.#join()
    }
    if (this.#isOut(answer.errorCode)) return this.#join()
    this.#memberId = answer.memberId
    this.#generation = answer.generationId
    const synced = await this.#connection.ask(syncGroup, 3, {
      ...this.#who,
      assignments: answer.leader === this.#memberId ? this.#assignments(answer.members) : [],
    })
    if (this.#isOut(synced.errorCode)) return this.#join()
    this.#partitions = [...synced.assignment]
  }

  /** A byte for each partition. */
  #assignments(
    members: readonly { readonly memberId: string }[],
  ): { memberId: string; assignment: Buffer }[] {
    const all = Array.from({ length: this.#ground.topic.partitions }, (_, partition) => partition)
    return members.map(({ memberId }, place) => ({
      memberId,
      assignment: Buffer.from(all.filter((partition) => partition % members.length === place)),
    }))
  }

  async #consume(partition: number): Promise<void> {
    const { name } = this.#ground.topic
    const fetched = await this.#connection.ask(offsetFetch, 5, {
      groupId: GROUP,
      topics: [{ name, partitionIndexes: [partition] }],
    })
    const committed = fetched.topics[0]?.partitions[0]?.committedOffset ?? -1
    const from = Math.max(committed, 0)
    const { responses } = await this.#connection.ask(fetch, 12, {
      maxWaitMs: 10,
      minBytes: 1,
      maxBytes: 200_000,
      isolationLevel: 1,
      sessionId: 0,
      sessionEpoch: -1,
      topics: [{ topic: name, partitions: [{ partition, fetchOffset: from, partitionMaxBytes: 200_000 }] }],
      forgottenTopicsData: [],
      rackId: '',
    })
    const answer = responses[0]?.partitions[0]
    if (answer === undefined) throw new Error('a partition is missing')
    let next = answer.logStartOffset
    if (answer.errorCode === NONE) {
      const walked = walk(answer.records ?? Buffer.alloc(0), from, this.#ground.batch)
      this.#ground.tally.fetched += walked.records
      next = walked.next
    } else if (answer.errorCode !== OFFSET_OUT_OF_RANGE) throw new Error(`fetch: error ${answer.errorCode}`)
    await this.#commit(partition, next)
  }

  async #commit(partitionIndex: number, committedOffset: number): Promise<void> {
    const { topics } = await this.#connection.ask(offsetCommit, 7, {
      groupId: GROUP,
      generationIdOrMemberEpoch: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: null,
      topics: [
        {
          name: this.#ground.topic.name,
          partitions: [{ partitionIndex, committedOffset, committedMetadata: null }],
        },
      ],
    })
    this.#isOut(topics[0]?.partitions[0]?.errorCode ?? NONE)
  }

  async #leave(): Promise<boolean> {
    if (this.#ground.random(3) > 0 && this.#memberId !== '') {
      await this.#connection.ask(leaveGroup, 2, { groupId: GROUP, memberId: this.#memberId })
    }
    this.#connection.close()
    return false
  }
}

/** One member after the other. */
export function member(ground: Ground): () => Promise<void> {
  let now: Member | undefined
  return async () => {
    now ??= new Member(ground, await Connection.open(ground.port))
    if (!(await now.step())) now = undefined
  }
}
