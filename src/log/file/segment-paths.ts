/**
 * Where the files of a log are, below the data directory. Names of segments are in the order of their offsets. One that
 * takes the place of others, since records were left out, has another name than they had: until a checkpoint tells of it,
 * they are all there.
 *
 *   00000000000000004711.log        as it was written
 *   00000000000000004711-1.log      of a later generation, and so on
 */
import { decodeName, encodeName } from './fs.ts'
import type { LogId } from './group.ts'

export const LOGS_DIRECTORY = 'logs'
/** Enough for every offset. */
const DIGITS = 20
const DIRECTORY = /^([\w%-]+)-(0|[1-9]\d{0,9})$/
const NAME = /^(\d{20})(?:-([1-9]\d{0,8}))?\.(?:log|index)$/

export function directoryOf({ topicId, partition }: LogId): string {
  return `${LOGS_DIRECTORY}/${encodeName(topicId)}-${partition}`
}

/** The log whose directory has this name; undefined for a name of none. */
export function logOf(name: string): LogId | undefined {
  const [, encoded = '', partition] = DIRECTORY.exec(name) ?? []
  const topicId = decodeName(encoded)
  return topicId === undefined || partition === undefined
    ? undefined
    : { topicId, partition: Number(partition) }
}

/** Of the segment whose first offset is `base`. */
export function segmentPath(directory: string, base: number, generation?: number): string {
  return `${directory}/${stemOf(base, generation)}.log`
}

/** Of its index. */
export function indexPath(directory: string, base: number, generation?: number): string {
  return `${directory}/${stemOf(base, generation)}.index`
}

function stemOf(base: number, generation = 0): string {
  const digits = String(base).padStart(DIGITS, '0')
  return generation === 0 ? digits : `${digits}-${generation}`
}

/** What the name of a segment or an index says; undefined for a name of neither. */
export function nameOf(file: string): { readonly base: number; readonly generation: number } | undefined {
  const [, digits, generation = 0] = NAME.exec(file) ?? []
  return digits === undefined ? undefined : { base: Number(digits), generation: Number(generation) }
}
