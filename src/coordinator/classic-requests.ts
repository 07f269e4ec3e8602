/**
 * What classic groups are asked, and what they answer: values, without a protocol's bytes. Errors have Kafka's names;
 * they and the limits are those of all groups of the protocol.
 */

export type ClassicState = 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable' | 'Dead'

export interface GroupLimits {
  /** Bounds of what a member may ask for. */
  readonly minSessionTimeoutMs: number
  readonly maxSessionTimeoutMs: number
  /** How long an empty group waits for more members after the last one that came. */
  readonly initialRebalanceDelayMs: number
  /** Members, with those that have only taken an id. */
  readonly maxSize: number
  /** Of members of modern groups, who do not choose: how long one is kept that is not heard of. */
  readonly consumerSessionTimeoutMs: number
  /** How often they are told to be heard of. */
  readonly consumerHeartbeatIntervalMs: number
}

/** Kafka's names of what can be wrong; handlers turn them into codes. */
export type GroupError =
  | 'NONE'
  | 'COORDINATOR_NOT_AVAILABLE'
  | 'FENCED_INSTANCE_ID'
  | 'FENCED_MEMBER_EPOCH'
  | 'GROUP_ID_NOT_FOUND'
  | 'GROUP_MAX_SIZE_REACHED'
  | 'ILLEGAL_GENERATION'
  | 'INCONSISTENT_GROUP_PROTOCOL'
  | 'INVALID_GROUP_ID'
  | 'INVALID_SESSION_TIMEOUT'
  | 'MEMBER_ID_REQUIRED'
  | 'NON_EMPTY_GROUP'
  | 'REBALANCE_IN_PROGRESS'
  | 'STALE_MEMBER_EPOCH'
  | 'UNKNOWN_MEMBER_ID'
  | 'UNRELEASED_INSTANCE_ID'

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
