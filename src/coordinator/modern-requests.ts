/**
 * What members of modern groups say in a heartbeat, and what they hear: values, without a protocol's bytes. What a
 * member does not repeat is null. Errors have Kafka's names.
 */
import type { GroupError } from './classic-requests.ts'

/** How the broker assigns: evenly and moving little, or topic by topic in runs of neighbours. */
export const ASSIGNORS = ['uniform', 'range'] as const
export type Assignor = (typeof ASSIGNORS)[number]
export const DEFAULT_ASSIGNOR: Assignor = 'uniform'

/** Epochs that say what a member wants, where others say what it knows. */
export const JOINS = 0
export const LEAVES = -1
/** A static member leaves, and will be back. */
export const LEAVES_FOR_NOW = -2

/** A pattern of topic names, matched as a whole. */
export interface TopicPattern {
  readonly source: string
  matches(name: string): boolean
}

export interface HeartbeatRequest {
  /** The member's for as long as its program runs; whoever has none is given one. */
  readonly memberId: string
  readonly epoch: number
  readonly instanceId: string | null
  readonly rackId: string | null
  readonly clientId: string
  readonly clientHost: string
  /** −1: as before. */
  readonly rebalanceTimeoutMs: number
  readonly topicNames: readonly string[] | null
  /** An empty source takes it back. */
  readonly topicPattern: TopicPattern | null
  readonly assignor: Assignor | null
  /** What it owns, as keys of partition-keys.ts. */
  readonly owned: ReadonlySet<string> | null
}

export interface HeartbeatResult {
  readonly error: GroupError
  readonly memberId: string
  readonly epoch: number
  readonly heartbeatIntervalMs: number
  /** Null: as before. */
  readonly assigned: ReadonlySet<string> | null
}

export function refusedHeartbeat(error: GroupError): HeartbeatResult {
  return { error, memberId: '', epoch: 0, heartbeatIntervalMs: 0, assigned: null }
}
