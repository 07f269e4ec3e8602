/** What groups of Kafka's protocol go by: options of the server, each with Kafka's name, by which tools know it. */

import type { GroupLimits } from '../coordinator/classic-requests.ts'
import { DEFAULT_GROUP_LIMITS } from '../coordinator/groups.ts'
import { count, invalid, known, nonNegative } from '../core/settings.ts'
import { DEFAULT_OFFSET_RETENTION_MS } from '../model/limits.ts'

/** Times and sizes of groups. Clients say what they want; this is what they get. */
export interface GroupOptions {
  /** Of classic groups: the shortest session that a member may ask for. Default 6 seconds. */
  readonly minSessionTimeoutMs?: number
  /** The longest. Default 30 minutes. */
  readonly maxSessionTimeoutMs?: number
  /** How long an empty classic group waits for more members after the last one that came. Default 0; Kafka: 3 seconds. */
  readonly initialRebalanceDelayMs?: number
  /** Members of a group. Default 10,000. */
  readonly maxSize?: number
  /** Of modern groups (KIP-848): how long a member is kept that is not heard of. Default 45 seconds. */
  readonly consumerSessionTimeoutMs?: number
  /** How often such a member is told to be heard of. Default 5 seconds. */
  readonly consumerHeartbeatIntervalMs?: number
}

type GroupOption = keyof GroupOptions

interface GroupConfig {
  readonly name: string
  readonly option: GroupOption
  readonly fallback: number
  readonly documentation: string
}

function define(name: string, option: GroupOption, documentation: string): GroupConfig {
  return { name, option, fallback: DEFAULT_GROUP_LIMITS[option], documentation }
}

/** Kafka's names of them. */
// biome-ignore format: a table
export const GROUP_CONFIGS: readonly GroupConfig[] = [
  define('group.consumer.heartbeat.interval.ms', 'consumerHeartbeatIntervalMs',
    'How often members of modern groups are to be heard of.'),
  define('group.consumer.session.timeout.ms', 'consumerSessionTimeoutMs',
    'How long a member of a modern group is kept that is not heard of.'),
  define('group.initial.rebalance.delay.ms', 'initialRebalanceDelayMs',
    'How long an empty group waits for more members.'),
  define('group.max.session.timeout.ms', 'maxSessionTimeoutMs',
    'The longest session that a member may ask for.'),
  define('group.max.size', 'maxSize',
    'Members of a group.'),
  define('group.min.session.timeout.ms', 'minSessionTimeoutMs',
    'The shortest session that a member may ask for.'),
]

export const MINUTE_MS = 60_000

/** Kafka's name of what is an option of the broker, `offsetRetentionMs`: its own readers go by it too. */
export const OFFSET_RETENTION = {
  name: 'offsets.retention.minutes',
  fallback: DEFAULT_OFFSET_RETENTION_MS / MINUTE_MS,
  documentation: 'How long offsets are kept that nobody reads.',
} as const

const NAMES = GROUP_CONFIGS.map(({ option }) => option)
const MAX_INT = 2 ** 31 - 1

/** With defaults filled in. @throws OdradekError INVALID_ARGUMENT */
export function groupSettings(options: GroupOptions | undefined): GroupLimits {
  const given = known('groups', options, NAMES)
  const defaults = DEFAULT_GROUP_LIMITS
  const ms = (name: GroupOption): number => whole(name, count(`groups.${name}`, given[name], defaults[name]))
  const delay = 'initialRebalanceDelayMs'
  const settings: GroupLimits = {
    minSessionTimeoutMs: ms('minSessionTimeoutMs'),
    maxSessionTimeoutMs: ms('maxSessionTimeoutMs'),
    initialRebalanceDelayMs: whole(delay, nonNegative(`groups.${delay}`, given[delay], defaults[delay])),
    maxSize: ms('maxSize'),
    consumerSessionTimeoutMs: ms('consumerSessionTimeoutMs'),
    consumerHeartbeatIntervalMs: ms('consumerHeartbeatIntervalMs'),
  }
  if (settings.minSessionTimeoutMs > settings.maxSessionTimeoutMs) {
    throw invalid('groups.minSessionTimeoutMs is at most maxSessionTimeoutMs')
  }
  if (settings.consumerHeartbeatIntervalMs >= settings.consumerSessionTimeoutMs) {
    throw invalid('groups.consumerHeartbeatIntervalMs is less than consumerSessionTimeoutMs')
  }
  return settings
}

/** As the protocol has them: whole, in 31 bits. */
function whole(name: GroupOption, value: number): number {
  if (Number.isInteger(value) && value <= MAX_INT) return value
  throw invalid(`groups.${name} is a whole number up to ${MAX_INT}; got ${value}`)
}

/** In whole minutes, as the protocol has them. */
export function offsetRetentionMinutes(offsetRetentionMs: number): number {
  return Math.min(Math.ceil(offsetRetentionMs / MINUTE_MS), MAX_INT)
}
