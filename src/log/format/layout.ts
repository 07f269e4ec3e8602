/**
 * RecordBatch v2, Kafka's unit on the wire and ours on disk: where its fields stand. Big-endian.
 *
 *   0 base offset i64 | 8 length i32 | 12 leader epoch i32 | 16 magic i8 | 17 CRC u32 |
 *   21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64 |
 *   43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 count i32 | 61 records ...
 *
 * `length` counts what follows it. The CRC-32C covers bytes 21 to the end, so a broker can set the base
 * offset and the leader epoch without touching the rest. Attributes: bits 0-2 compression, 3 log append
 * time, 4 transactional, 5 control, 6 delete horizon (the base timestamp of a compacted batch is then the time
 * at which its tombstones and markers may go). Bit 14 is ours, Kafka uses none above 6: the records were
 * published in process, and so validated; a client that sends it is refused.
 */
export const SIZE_AT = 8
export const EPOCH_AT = 12
export const MAGIC_AT = 16
export const CRC_AT = 17
export const ATTRIBUTES_AT = 21
export const LAST_DELTA_AT = 23
export const BASE_TIMESTAMP_AT = 27
export const MAX_TIMESTAMP_AT = 35
export const PRODUCER_ID_AT = 43
export const PRODUCER_EPOCH_AT = 51
export const SEQUENCE_AT = 53
export const COUNT_AT = 57

/** Bytes in front of the first record. */
export const HEADER_BYTES = 61
/** Offset and length, which `length` does not count. */
export const PREFIX_BYTES = 12

export const MAGIC = 2
export const COMPRESSION_BITS = 0b111
export const LOG_APPEND_TIME: number = 1 << 3
export const TRANSACTIONAL: number = 1 << 4
export const CONTROL: number = 1 << 5
export const DELETE_HORIZON: number = 1 << 6
export const IN_PROCESS: number = 1 << 14

/**
 * Why a header's numbers cannot be true together, or `null`. Allocates nothing where they can. A batch may have no record
 * left, but takes offsets all the same: Kafka's compaction keeps the header of a producer's last batch, for its sequence.
 */
export function contradiction(
  baseOffset: number,
  lastOffsetDelta: number,
  count: number,
  producerId: number,
): string | null {
  if (count < 0) return `a batch of ${count} records`
  if (lastOffsetDelta < Math.max(count - 1, 0))
    return `${count} records up to offset delta ${lastOffsetDelta}`
  if (baseOffset < 0 || !Number.isSafeInteger(baseOffset + lastOffsetDelta)) {
    return `base offset ${baseOffset} is out of range`
  }
  if (producerId < -1 || !Number.isSafeInteger(producerId)) {
    return `producer id ${producerId} is out of range`
  }
  return null
}
