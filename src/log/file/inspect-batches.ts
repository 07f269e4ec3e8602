/**
 * The batches of a log one by one, for `odradek inspect --batches`: those in its segments, then those that only the journal
 * has. Headers are read, records are not; what is damaged is told of where it is met, and the next file goes on.
 */
import { compressionName } from '../format/compression.ts'
import { decodeMarker } from '../format/control.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { readInt32 } from '../format/integers.ts'
import { ATTRIBUTES_AT, CRC_AT, IN_PROCESS } from '../format/layout.ts'
import { BatchScan } from '../format/scan.ts'
import { type DataFile, type FileSystem, unlessMissing } from './fs.ts'
import { type DataDirectory, type LogReport, timeOf } from './inspect.ts'
import { livingEntries } from './recovery-plan.ts'

const PIECE_BYTES = 1024 * 1024

export interface BatchSelection {
  /** Name or id. */
  readonly topic: string
  /** Default: all. */
  readonly partition?: number
  /** Batches with offsets from this one … Default: all. */
  readonly from?: number
  /** … to below this one. */
  readonly to?: number
}

export interface BatchReport {
  readonly topic: string | null
  readonly topicId: string
  readonly partition: number
  readonly file: string
  /** In the file, of its first byte. */
  readonly position: number
  readonly sizeBytes: number
  readonly base: number
  readonly last: number
  readonly count: number
  /** Newest of its records, in ISO 8601. */
  readonly newest: string | null
  readonly leaderEpoch: number
  readonly producer: { readonly id: number; readonly epoch: number; readonly sequence: number } | null
  readonly transactional: boolean
  /** What a control batch says. */
  readonly control: 'commit' | 'abort' | 'other' | null
  readonly compression: string
  /** Published in this process, not over a protocol. */
  readonly inProcess: boolean
  readonly crc: 'ok' | 'wrong'
}

/** In place of a batch that is none: what follows it in the file is not shown. */
export interface DamageReport {
  readonly topic: string | null
  readonly topicId: string
  readonly partition: number
  readonly file: string
  readonly position: number
  readonly damage: string
}

/** The logs that a selection names. */
export function logsNamed({ report }: DataDirectory, { topic, partition }: BatchSelection): LogReport[] {
  const named = report.logs.filter((log) => log.topic === topic)
  const found = named.length > 0 ? named : report.logs.filter((log) => log.topicId === topic)
  return found.filter((log) => partition === undefined || log.partition === partition)
}

export async function* listBatches(
  directory: DataDirectory,
  selection: BatchSelection,
): AsyncGenerator<BatchReport | DamageReport> {
  const { from = 0, to = Number.POSITIVE_INFINITY } = selection
  for (const log of logsNamed(directory, selection)) {
    for await (const batch of batchesOf(directory, log, from)) {
      if ('damage' in batch || (batch.last >= from && batch.base < to)) yield batch
    }
  }
}

async function* batchesOf(directory: DataDirectory, log: LogReport, from: number) {
  const describe = new Describer(log, directory.crc32c)
  for (const { file, next, sizeBytes } of log.segments) {
    if ((next ?? Number.POSITIVE_INFINITY) <= from) continue
    // Beside a broker retention may have taken it.
    const open = await unlessMissing(directory.fs.open(file, 'read'))
    if (open !== undefined) {
      try {
        yield* describe.file(open, file, sizeBytes)
      } finally {
        await open.close()
      }
    } else if (!directory.moving) yield describe.damage(file, 0, 'it is missing')
  }
  if (directory.plan !== undefined) yield* inJournal(directory.fs, directory.plan, log, describe)
}

async function* inJournal(
  fs: FileSystem,
  plan: NonNullable<DataDirectory['plan']>,
  log: LogReport,
  describe: Describer,
) {
  for await (const { entry, file, position } of livingEntries(fs, plan)) {
    if (entry.kind !== 'batch') continue
    const { topicId, partition } = entry.log
    if (topicId !== log.topicId || partition !== log.partition) continue
    const batch = describe.batch(entry.bytes, file, position)
    if ('damage' in batch || batch.base >= (log.checkpointEnd ?? 0)) yield batch
  }
}

class Describer {
  readonly #log: LogReport
  readonly #crc32c: Crc32c
  readonly #scan = new BatchScan()

  constructor(log: LogReport, crc32c: Crc32c) {
    this.#log = log
    this.#crc32c = crc32c
  }

  damage(file: string, position: number, damage: string): DamageReport {
    const { topic, topicId, partition } = this.#log
    return { topic, topicId, partition, file, position, damage }
  }

  /** The one that `bytes` are, at `position` of the file. */
  batch(bytes: Uint8Array, file: string, position: number): BatchReport | DamageReport {
    const scan = this.#scan.start(bytes)
    return scan.next() ? this.#report(bytes, file, position) : this.damage(file, position, faultOf(scan))
  }

  /** Those of a segment, whose batches end at `until`. */
  async *file(open: DataFile, file: string, until: number): AsyncGenerator<BatchReport | DamageReport> {
    const scan = this.#scan
    let buffer = new Uint8Array(Math.min(PIECE_BYTES, until))
    for (let at = 0; at < until; ) {
      const wanted = Math.min(buffer.length, until - at)
      const length = await open.read(buffer.subarray(0, wanted), at)
      scan.start(buffer, 0, length)
      while (scan.next()) yield this.#report(buffer, file, at + scan.position)
      const goesOn = length === wanted && at + length < until
      if (scan.end === 'end' && length > 0) at += length
      else if (scan.end === 'cut' && goesOn && scan.sizeBytes <= until - at - scan.position) {
        // The next piece begins with it, and is large enough.
        if (scan.position === 0)
          buffer = new Uint8Array(Math.min(Math.max(scan.sizeBytes, wanted * 2), until))
        at += scan.position
      } else {
        yield this.damage(file, at + scan.position, length < wanted ? 'the file ends here' : faultOf(scan))
        return
      }
    }
  }

  /** The one that the scan stands on. */
  #report(bytes: Uint8Array, file: string, position: number): BatchReport {
    const { topic, topicId, partition } = this.#log
    const scan = this.#scan
    const { base, last, count, sizeBytes, leaderEpoch, maxTimestamp, transactional } = scan
    const batch = bytes.subarray(scan.position, scan.position + sizeBytes)
    const crc =
      this.#crc32c(batch.subarray(ATTRIBUTES_AT)) === readInt32(batch, CRC_AT) >>> 0 ? 'ok' : 'wrong'
    return {
      topic,
      topicId,
      partition,
      file,
      position,
      sizeBytes,
      base,
      last,
      count,
      newest: timeOf(maxTimestamp),
      leaderEpoch,
      producer:
        scan.producerId < 0
          ? null
          : { id: scan.producerId, epoch: scan.producerEpoch, sequence: scan.baseSequence },
      transactional,
      control: scan.control ? markerOf(batch) : null,
      compression: compressionName(scan.compression),
      inProcess: (scan.attributes & IN_PROCESS) !== 0,
      crc,
    }
  }
}

function markerOf(batch: Uint8Array): 'commit' | 'abort' | 'other' {
  try {
    const marker = decodeMarker(batch, 0)
    return marker === null ? 'other' : marker.commit ? 'commit' : 'abort'
  } catch {
    // Not one that ends a transaction, or damaged, as its CRC tells.
    return 'other'
  }
}

function faultOf({ end, fault }: BatchScan): string {
  if (end === 'corrupt') return fault
  return end === 'zeros' ? 'zeros where a batch should be' : 'a batch reaches beyond the end'
}
