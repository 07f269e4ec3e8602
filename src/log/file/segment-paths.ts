/** Where the files of a log are, below the data directory. Names of segments are in the order of their offsets. */
import { decodeName, encodeName } from './fs.ts'
import type { LogId } from './group.ts'

export const LOGS_DIRECTORY = 'logs'
/** Enough for every offset. */
const DIGITS = 20
const DIRECTORY = /^([\w%-]+)-(0|[1-9]\d{0,9})$/
const NAME = /^(\d{20})\.(?:log|index)$/

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
export function segmentPath(directory: string, base: number): string {
  return `${directory}/${String(base).padStart(DIGITS, '0')}.log`
}

/** Of its index. */
export function indexPath(directory: string, base: number): string {
  return `${directory}/${String(base).padStart(DIGITS, '0')}.index`
}

/** The offset in the name of a segment or an index; undefined for a name of neither. */
export function baseOf(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
