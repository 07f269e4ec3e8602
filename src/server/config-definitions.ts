/**
 * Every config of a topic that Kafka 4 knows, and what of Odradek's own it has no name for: `odradek.` in front. Of each
 * its type, Kafka's default, the broker's config that gives the default there, and whether it does anything here. What
 * has no effect is still checked, kept and answered, so that tools which set it go on working.
 *
 * docs/kafka-configs.md has this table; a test holds the two together.
 */
import { BOOLEAN, int, LONG_MAX, list, long, oneOfTexts, SHARE, type ValueType } from './config-values.ts'

export interface ConfigDefinition extends ValueType {
  readonly name: string
  /** Kafka's. */
  readonly fallback: string
  /** The broker's config behind it; null for none. */
  readonly broker: string | null
  readonly hasEffect: boolean
  readonly documentation: string
}

const NEVER = String(LONG_MAX)

function define(
  name: string,
  type: ValueType,
  fallback: string,
  broker: string | null,
  documentation: string,
  effect: 'works' | 'kept' = 'kept',
): ConfigDefinition {
  return { ...type, name, fallback, broker, hasEffect: effect === 'works', documentation }
}

const POLICIES = list('`delete`, `compact`', /^(delete|compact)$/, 1)
const REPLICAS = list('`partition:broker`, or `*`', /^(\*|\d+:\d+)$/, 0)
const CODECS = oneOfTexts('uncompressed', 'zstd', 'lz4', 'snappy', 'gzip', 'producer')
const FALSE: ValueType = { ...BOOLEAN, values: '`false`', check: oneOfTexts('false').check }
const GZIP_LEVEL: ValueType = {
  type: 'int',
  values: 'from 1 to 9, or -1',
  check: (text) => (text === '-1' ? text : int(1, 9n).check(text)),
}

// biome-ignore format: a table
const DEFINITIONS: readonly ConfigDefinition[] = [
  define('cleanup.policy', POLICIES, 'delete', 'log.cleanup.policy',
    'How old records go: by retention, by keeping the newest of each key, or both.', 'works'),
  define('compression.gzip.level', GZIP_LEVEL, '-1', 'compression.gzip.level',
    'Level where the broker compresses with gzip.'),
  define('compression.lz4.level', int(1, 17n), '9', 'compression.lz4.level',
    'Level where the broker compresses with lz4.'),
  define('compression.type', CODECS, 'producer', 'compression.type',
    'The codec that batches are stored with; `producer`: that of their producers.', 'works'),
  define('compression.zstd.level', int(-131_072, 22n), '3', 'compression.zstd.level',
    'Level where the broker compresses with zstd.'),
  define('delete.retention.ms', long(0), '86400000', 'log.cleaner.delete.retention.ms',
    'How long a compacted topic keeps a tombstone.', 'works'),
  define('file.delete.delay.ms', long(0), '60000', 'log.segment.delete.delay.ms',
    'How long a file stays after its segment is gone.'),
  define('flush.messages', long(1), NEVER, 'log.flush.interval.messages',
    'After how many records the log is synced. Here the durability of the engine says.'),
  define('flush.ms', long(0), NEVER, 'log.flush.interval.ms',
    'After which time the log is synced. Here the durability of the engine says.'),
  define('follower.replication.throttled.replicas', REPLICAS, '', null,
    'Replicas whose followers are slowed down.'),
  define('index.interval.bytes', int(0), '4096', 'log.index.interval.bytes',
    'How many bytes lie between two entries of an index.'),
  define('leader.replication.throttled.replicas', REPLICAS, '', null,
    'Replicas whose leaders are slowed down.'),
  define('local.retention.bytes', long(-2), '-2', 'log.local.retention.bytes',
    'What of a tiered topic stays on this machine.'),
  define('local.retention.ms', long(-2), '-2', 'log.local.retention.ms',
    'How long records of a tiered topic stay on this machine.'),
  define('max.compaction.lag.ms', long(1), NEVER, 'log.cleaner.max.compaction.lag.ms',
    'After which time a record is compacted at the latest.'),
  define('max.message.bytes', int(0), '1048588', 'message.max.bytes',
    'Bytes that a batch of a producer has at most, compressed.', 'works'),
  define('message.downconversion.enable', BOOLEAN, 'true', 'log.message.downconversion.enable',
    'Whether old clients get old formats. Kafka 4 has none either.'),
  define('message.timestamp.after.max.ms', long(0), '3600000', 'log.message.timestamp.after.max.ms',
    'How far ahead of the broker\'s clock the time of a record may be.', 'works'),
  define('message.timestamp.before.max.ms', long(0), NEVER, 'log.message.timestamp.before.max.ms',
    'How far behind the broker\'s clock the time of a record may be.', 'works'),
  define('message.timestamp.type', oneOfTexts('CreateTime', 'LogAppendTime'), 'CreateTime', 'log.message.timestamp.type',
    'Whose time a record has: the producer\'s, or that of its append.', 'works'),
  define('min.cleanable.dirty.ratio', SHARE, '0.5', 'log.cleaner.min.cleanable.ratio',
    'What share of a log must be new before it is compacted. Here always one half.'),
  define('min.compaction.lag.ms', long(0), '0', 'log.cleaner.min.compaction.lag.ms',
    'How long a record is not compacted.'),
  define('min.insync.replicas', int(1), '1', 'min.insync.replicas',
    'Replicas that must have a record before acks=all is answered. Here there is one.'),
  define('odradek.retention.records', long(-1), '-1', null,
    'Records kept per partition; -1 for no limit.', 'works'),
  define('preallocate', BOOLEAN, 'false', 'log.preallocate',
    'Whether files get their size when they are made.'),
  define('remote.log.copy.disable', BOOLEAN, 'false', null,
    'Whether a tiered topic stops copying.'),
  define('remote.log.delete.on.disable', BOOLEAN, 'false', null,
    'Whether what was copied goes when tiering ends.'),
  define('remote.storage.enable', FALSE, 'false', null,
    'Whether the topic is tiered. There is no remote storage here.'),
  define('retention.bytes', long(-1), '-1', 'log.retention.bytes',
    'Bytes kept per partition; -1 for no limit.', 'works'),
  define('retention.ms', long(-1), '604800000', 'log.retention.ms',
    'Milliseconds a record is kept; -1 for ever.', 'works'),
  define('segment.bytes', int(1_048_576), '1073741824', 'log.segment.bytes',
    'Bytes of a segment. Here an option of the engine.'),
  define('segment.index.bytes', int(4), '10485760', 'log.index.size.max.bytes',
    'Bytes of an index at most.'),
  define('segment.jitter.ms', long(0), '0', 'log.roll.jitter.ms',
    'By how much segments end earlier, at random.'),
  define('segment.ms', long(1), '604800000', 'log.roll.ms',
    'After which time a segment ends.'),
  define('unclean.leader.election.enable', BOOLEAN, 'false', 'unclean.leader.election.enable',
    'Whether a replica that is behind may lead.'),
]

/** By name, in the order of names. */
export const TOPIC_CONFIGS: ReadonlyMap<string, ConfigDefinition> = new Map(
  DEFINITIONS.map((definition) => [definition.name, definition]),
)
