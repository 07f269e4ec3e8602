/**
 * What opening does to the files of a log, decided before any of it is done: by recovery, which does it, and by whoever
 * wants to know without changing anything. What a checkpoint tells of stays, all else is nobody's (segments.ts).
 *
 *   told of    │ sealed │ sealed │ active ▸ │
 *   there      │ gone   │ sealed │ active ▸   more │ a later one │
 *                ▲ only below where the log begins └ cut ┘ └ removed ┘
 */
import type { StoredSegment } from './checkpoint.ts'
import { DamagedFile } from './damage.ts'
import type { FileSystem } from './fs.ts'
import type { LogId } from './group.ts'
import { directoryOf, indexPath, nameOf, segmentPath } from './segment-paths.ts'

export interface SegmentPlanOptions {
  readonly fs: FileSystem
  readonly log: LogId
  /** Where the log begins, as its segments are told of: the offset that comes next where there are none. */
  readonly start: number
  /** Where it begins by what the journal says since: segments below may be gone. Default: `start`. */
  readonly neededFrom?: number
}

export interface SegmentPlan {
  /** In the order of their offsets. */
  readonly kept: readonly StoredSegment[]
  /** Offset after the last one. */
  readonly next: number
  /** Paths of files to be removed. */
  readonly remove: readonly string[]
  /** The active segment, where its file is longer than what is known of it. */
  readonly cut: Cut | null
  /** Others are in their places, and the checkpoint tells of them still: they stay until the next one. */
  readonly replaced: readonly StoredSegment[]
}

export interface Cut {
  readonly file: string
  readonly fromBytes: number
  readonly toBytes: number
}

/** @throws OdradekError CORRUPT_LOG where a segment is missing, or the active one is too short */
export async function planSegments(
  options: SegmentPlanOptions,
  stored: readonly StoredSegment[],
  replaced: readonly StoredSegment[] = [],
): Promise<SegmentPlan> {
  const { fs, log, start, neededFrom = start } = options
  const directory = directoryOf(log)
  // What is none of ours stays where it is.
  const names = (await fs.list(directory)).filter((name) => nameOf(name) !== undefined)
  const paths = names.map((name) => `${directory}/${name}`)
  const there = new Set(paths)
  let kept: StoredSegment[] = []
  let next = stored[0]?.base ?? start
  for (const each of stored) {
    const path = segmentPath(directory, each.base, each.generation)
    if (each.base !== next) throw missing(segmentPath(directory, next))
    next = each.next
    if (each.sizeBytes === 0 && !each.sealed) continue
    if (there.has(path)) kept.push(each)
    else if (next > neededFrom) throw missing(path)
    else kept = []
  }
  const known = new Set([...kept, ...replaced].flatMap((each) => pathsOf(directory, each)))
  const remove = paths.filter((path) => !known.has(path))
  return { kept, next, remove, cut: await cutOf(fs, directory, kept.at(-1)), replaced }
}

async function cutOf(
  fs: FileSystem,
  directory: string,
  last: StoredSegment | undefined,
): Promise<Cut | null> {
  if (last === undefined || last.sealed) return null
  const path = segmentPath(directory, last.base, last.generation)
  const file = await fs.open(path, 'read')
  try {
    const fromBytes = await file.size()
    const toBytes = last.sizeBytes
    if (fromBytes < toBytes) {
      throw new DamagedFile(path, { position: fromBytes, what: `it ends here, and not at ${toBytes}` })
    }
    return fromBytes === toBytes ? null : { file: path, fromBytes, toBytes }
  } finally {
    await file.close()
  }
}

function pathsOf(directory: string, { base, generation }: StoredSegment): readonly string[] {
  return [segmentPath(directory, base, generation), indexPath(directory, base, generation)]
}

function missing(path: string): DamagedFile {
  return new DamagedFile(path, { position: 0, what: 'it is missing' })
}
