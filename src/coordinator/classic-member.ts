/**
 * One member of a classic group: what it said when it joined, what it was assigned, and what it waits for. Its session
 * is a due thing: it fires when the member was not heard of for its session timeout, and rests while a join or a sync
 * of the member waits for an answer, as that is then ours to give.
 */
import { Due } from '../core/due-queue.ts'

/** Kafka's names of what can be wrong; handlers turn them into codes. */
export type GroupError =
  | 'NONE'
  | 'COORDINATOR_NOT_AVAILABLE'
  | 'FENCED_INSTANCE_ID'
  | 'GROUP_ID_NOT_FOUND'
  | 'GROUP_MAX_SIZE_REACHED'
  | 'ILLEGAL_GENERATION'
  | 'INCONSISTENT_GROUP_PROTOCOL'
  | 'INVALID_GROUP_ID'
  | 'INVALID_SESSION_TIMEOUT'
  | 'MEMBER_ID_REQUIRED'
  | 'NON_EMPTY_GROUP'
  | 'REBALANCE_IN_PROGRESS'
  | 'UNKNOWN_MEMBER_ID'

/** A way to assign that a member knows, with what it wants to be assigned. */
export interface Protocol {
  readonly name: string
  /** The leader's to read. Kept: it must not be a view of something larger. */
  readonly metadata: Uint8Array
  /** Topics it subscribes to, where that can be told. */
  readonly topics: readonly string[] | null
}

/** Who says that he is which member. */
export interface MemberRef {
  /** Empty: not a member, or one that is named by its instance alone. */
  readonly memberId: string
  readonly instanceId: string | null
}

/** The same, of a generation; −1 for none. */
export interface GenerationRef extends MemberRef {
  readonly generation: number
}

export interface JoinRequest extends MemberRef {
  readonly clientId: string
  readonly clientHost: string
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
  readonly protocolType: string
  /** In the order in which it would like them. */
  readonly protocols: readonly Protocol[]
  /** Whether one without an id must take one and come again with it, so that no member is nobody's. */
  readonly requiresId: boolean
  /** Whether a leader that comes back can be told to keep the assignment as it is. */
  readonly canSkipAssignment: boolean
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

export interface JoinResult {
  readonly error: GroupError
  readonly memberId: string
  readonly generation: number
  readonly protocolType: string | null
  readonly protocolName: string | null
  readonly leader: string
  readonly skipAssignment: boolean
  /** For the leader alone. */
  readonly members: readonly JoinedMember[]
}

export interface JoinedMember {
  readonly memberId: string
  readonly instanceId: string | null
  readonly metadata: Uint8Array
}

export interface SyncRequest extends GenerationRef {
  /** Null: not said. */
  readonly protocolType: string | null
  readonly protocolName: string | null
  /** By member id, from the leader. */
  readonly assignments: ReadonlyMap<string, Uint8Array>
  readonly signal: AbortSignal
}

export interface SyncResult {
  readonly error: GroupError
  readonly protocolType: string | null
  readonly protocolName: string | null
  /** Empty where there is none. */
  readonly assignment: Uint8Array
}

export const NO_ASSIGNMENT: Uint8Array = new Uint8Array(0)

/** An answer that is given later; null where nobody waits for it any more. */
export class Reply<T> {
  readonly answered: Promise<T | null>
  readonly #signal: AbortSignal
  #resolve: (value: T | null) => void = () => {}
  readonly #abort: () => void

  constructor(signal: AbortSignal, onGone: (reply: Reply<T>) => void) {
    this.#signal = signal
    this.answered = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#abort = () => {
      this.#resolve(null)
      onGone(this)
    }
    signal.addEventListener('abort', this.#abort, { once: true })
  }

  give(value: T): void {
    this.#signal.removeEventListener('abort', this.#abort)
    this.#resolve(value)
  }
}

export class ClassicMember extends Due {
  readonly id: string
  readonly instanceId: string | null
  readonly clientId: string
  readonly clientHost: string
  sessionTimeoutMs: number = 0
  rebalanceTimeoutMs: number = 0
  protocols: readonly Protocol[] = []
  assignment: Uint8Array = NO_ASSIGNMENT
  /** It has joined, and waits for the others. */
  joining: Reply<JoinResult> | null = null
  /** It waits for the leader's assignment. */
  syncing: Reply<SyncResult> | null = null
  /** It has not been told yet that it is a member. */
  isNew: boolean = true
  /** Its client chose to come with this id, so that it can come with it again. */
  readonly knowsId: boolean
  readonly #onExpired: (member: ClassicMember) => void

  constructor(id: string, request: JoinRequest, onExpired: (member: ClassicMember) => void) {
    super()
    this.id = id
    this.knowsId = request.memberId === id
    this.instanceId = request.instanceId
    this.clientId = request.clientId
    this.clientHost = request.clientHost
    this.#onExpired = onExpired
    this.update(request)
  }

  update({ sessionTimeoutMs, rebalanceTimeoutMs, protocols }: JoinRequest): void {
    this.sessionTimeoutMs = sessionTimeoutMs
    this.rebalanceTimeoutMs = rebalanceTimeoutMs
    this.protocols = protocols
  }

  override fire(): void {
    this.#onExpired(this)
  }

  knows(protocol: string): boolean {
    return this.protocols.some(({ name }) => name === protocol)
  }

  /** What it said for a protocol. */
  metadataFor(protocol: string | null): Uint8Array {
    return this.protocols.find(({ name }) => name === protocol)?.metadata ?? NO_ASSIGNMENT
  }

  /** Whether a join says nothing new. */
  matches(protocols: readonly Protocol[]): boolean {
    return (
      protocols.length === this.protocols.length &&
      protocols.every(({ name, metadata }, i) => {
        const mine = this.protocols[i] as Protocol
        return name === mine.name && areEqual(metadata, mine.metadata)
      })
    )
  }
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}

export function refusedJoin(error: GroupError, memberId: string = ''): JoinResult {
  return {
    error,
    memberId,
    generation: -1,
    protocolType: null,
    protocolName: null,
    leader: '',
    skipAssignment: false,
    members: [],
  }
}

export function refusedSync(error: GroupError): SyncResult {
  return { error, protocolType: null, protocolName: null, assignment: NO_ASSIGNMENT }
}
