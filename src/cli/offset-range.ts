/**
 * Where to read from and to, in rpk's words:
 *
 *   start   end   N        from there on          @T       from that time on
 *   +N      -N             N behind the start, N before the end
 *   N:M   :M   N:          from N to before M     @T:T     from one time to before another; `end` as a time is now
 *
 * A time is milliseconds or seconds since the epoch, an ISO date with or without a time, or so long ago: -1h, -30m.
 */
import { UsageError } from './command.ts'

export type Position =
  | { readonly at: 'start' | 'end' }
  | { readonly at: 'offset'; readonly offset: number }
  | { readonly at: 'after-start' | 'before-end'; readonly count: number }
  | { readonly at: 'time'; readonly timestamp: number }

export interface OffsetRange {
  readonly from: Position
  /** Not read any more. */
  readonly to: Position | undefined
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** Smaller ones are seconds, as in rpk: this is 2001 in milliseconds. */
const MILLISECONDS_FROM = 1e12
const START: Position = { at: 'start' }
const END: Position = { at: 'end' }

/** @throws UsageError */
export function offsetRange(text: string, nowMs: number): OffsetRange {
  if (text.startsWith('@')) return timeRange(text.slice(1), nowMs)
  const [, from, to] = /^(\d+)?:(\d+|end)?$/.exec(text) ?? []
  if (from !== undefined || to !== undefined) {
    const range = {
      from: from === undefined ? START : positionOf(from),
      to: to === undefined ? undefined : positionOf(to),
    }
    if (
      Number(from ?? 0) > Number(to === 'end' ? Number.POSITIVE_INFINITY : (to ?? Number.POSITIVE_INFINITY))
    ) {
      throw new UsageError(`--offset ${text} ends before it begins`)
    }
    return range
  }
  return { from: positionOf(text), to: undefined }
}

/** One place, as `group reset` wants it. @throws UsageError */
export function position(text: string, nowMs: number, name: string = '--to'): Position {
  if (text.startsWith('@')) {
    const timestamp = timeOf(text.slice(1), nowMs)
    if (timestamp !== undefined) return { at: 'time', timestamp }
    throw new UsageError(`${name} ${text}: a time is milliseconds, an ISO date, or so long ago, as -1h`)
  }
  return positionOf(text, name)
}

function positionOf(text: string, name: string = '--offset'): Position {
  if (text === 'start' || text === 'beginning') return START
  if (text === 'end') return END
  const [, sign, digits] = /^([+-]?)(\d{1,16})$/.exec(text) ?? []
  const number = Number(digits)
  if (digits === undefined || !Number.isSafeInteger(number)) {
    throw new UsageError(`${name} is start, end, an offset, +N, -N or @time; not "${text}"`)
  }
  if (sign === '+') return { at: 'after-start', count: number }
  return sign === '-' ? { at: 'before-end', count: number } : { at: 'offset', offset: number }
}

function timeRange(text: string, nowMs: number): OffsetRange {
  const from = timeOf(text, nowMs)
  if (from !== undefined) return { from: { at: 'time', timestamp: from }, to: undefined }
  // Times of the day have colons too: the one between is that with a time on either side.
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1)) {
    const first = text.slice(0, at)
    const [begin, end] = [timeOf(first, nowMs), endOf(text.slice(at + 1).replace(/^@/, ''), nowMs)]
    if ((begin === undefined && first !== '') || end === undefined) continue
    return { from: begin === undefined ? START : { at: 'time', timestamp: begin }, to: end }
  }
  throw new UsageError(`--offset @${text}: a time is milliseconds, an ISO date, or so long ago, as -1h`)
}

function endOf(text: string, nowMs: number): Position | undefined {
  if (text === 'end' || text === '') return END
  const timestamp = timeOf(text, nowMs)
  return timestamp === undefined ? undefined : { at: 'time', timestamp }
}

function timeOf(text: string, nowMs: number): number | undefined {
  if (/^\d{1,16}$/.test(text)) return Number(text) < MILLISECONDS_FROM ? Number(text) * 1_000 : Number(text)
  const [, count, unit = ''] = /^-(\d{1,10})(ms|s|m|h|d)$/.exec(text) ?? []
  if (count !== undefined) return nowMs - Number(count) * (UNITS_MS[unit] as number)
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?$/.test(text))
    return undefined
  const timestamp = Date.parse(text)
  return Number.isNaN(timestamp) ? undefined : timestamp
}
