/** Defaults and bounds, in one place. Each is documented in docs/guide. */
export const KiB: number = 1024
export const MiB: number = 1024 * KiB

/** Retention of a memory partition, when the topic does not say. */
export const DEFAULT_RETENTION_RECORDS = 65_536
export const DEFAULT_RETENTION_BYTES: number = 256 * MiB
/** Of a partition on disk, where records are bounded by their bytes alone. */
export const DEFAULT_FILE_RETENTION_BYTES: number = 1024 * MiB
/** How long a compacted topic keeps a tombstone; Kafka's delete.retention.ms. */
export const DEFAULT_DELETE_RETENTION_MS: number = 24 * 3_600_000

/** Nominal bytes of a value that is neither string nor bytes, and of the record around any value. */
export const FLAT_VALUE_BYTES = 256
export const RECORD_OVERHEAD_BYTES = 64
/** Where values are encoded: what a record costs beside value, key and headers (lengths and deltas), rounded up. */
export const ENCODED_OVERHEAD_BYTES = 16

export const DEFAULT_PUBLISH_TIMEOUT_MS = 30_000
/** Publishers that may wait for room in one topic. */
export const DEFAULT_MAX_WAITING = 10_000
export const DEFAULT_MAX_WAITING_BYTES: number = 64 * MiB

/** How long, and how many, publish ids are remembered. */
export const DEFAULT_DEDUPE_MS = 120_000
export const DEFAULT_DEDUPE_RECORDS = 100_000

export const DEFAULT_ACK_TIMEOUT_MS = 30_000
export const DEFAULT_RETRY_ATTEMPTS = 5
export const DEFAULT_RETRY_DELAY_MS = 50
export const DEFAULT_RETRY_MAX_DELAY_MS = 1_000
export const DEFAULT_GRACE_MS = 30_000
export const DEFAULT_OFFSET_RETENTION_MS: number = 7 * 24 * 3_600_000
export const DEFAULT_COMMIT_FLUSH_MS = 50
export const DEFAULT_DRAIN_MS = 10_000
export const STALLED_AFTER_MS = 5_000

/** Unsettled and settled-beyond-committed offsets that one cursor may span. */
export const MAX_WINDOW = 16_384
/** `nack({ delayMs })` is capped here: a record parked for longer belongs in another topic. */
export const MAX_NACK_DELAY_MS = 900_000

export const PRESSURE_AT = 0.8
export const DRAIN_AT = 0.5

export const MAX_TOPIC_NAME = 245
export const MAX_PARTITIONS = 100_000
