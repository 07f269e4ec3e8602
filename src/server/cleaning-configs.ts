/**
 * The configs that say how a log gives up records, from texts to the settings of a topic and back. A topic goes by its
 * settings alone, whoever made them; what Kafka's tools see of them is made here.
 *
 *   cleanup.policy    cleanup    retention
 *   delete            delete     as the configs of it say
 *   compact           compact    none: Kafka ignores it
 *   compact,delete    compact    as the configs of it say
 */
import { invalid } from '../core/settings.ts'
import type { Cleaning } from '../core/topic-settings.ts'
import type { Engine } from '../log/contract.ts'
import { itemsOf, LONG_MAX } from './config-values.ts'

export const CLEANING_CONFIGS = [
  'cleanup.policy',
  'delete.retention.ms',
  'retention.ms',
  'retention.bytes',
  'odradek.retention.records',
] as const

export type CleaningConfig = (typeof CLEANING_CONFIGS)[number]

const NEVER = Number.POSITIVE_INFINITY

/** What the engine asks for instead of Kafka's defaults: in memory something must bound a log besides its age. */
export function engineDefaults({ encodes, retention }: Engine): ReadonlyMap<string, string> {
  if (encodes) return new Map()
  return new Map([
    ['retention.bytes', limitText(retention.bytes)],
    ['odradek.retention.records', limitText(retention.records)],
  ])
}

/** @throws OdradekError INVALID_ARGUMENT */
export function cleaningOf(text: (name: CleaningConfig) => string): Cleaning {
  const policies = itemsOf(text('cleanup.policy'))
  const compacts = policies.includes('compact')
  const limit = (name: CleaningConfig, least: number): number =>
    compacts && !policies.includes('delete') ? NEVER : limitOf(name, text(name), least)
  return {
    cleanup: compacts ? 'compact' : 'delete',
    deleteRetentionMs: finite(text('delete.retention.ms')),
    retention: {
      // Nothing is younger than 0 ms: the next look takes what is there, as one of 1 ms does.
      ageMs: Math.max(limit('retention.ms', 0), 1),
      bytes: limit('retention.bytes', 1),
      records: limit('odradek.retention.records', 1),
    },
  }
}

/** The texts that make such settings. */
export function cleaningTexts({ cleanup, deleteRetentionMs, retention }: Cleaning): Map<string, string> {
  const { ageMs, bytes, records } = retention
  const texts = new Map([
    ['cleanup.policy', cleanup],
    ['delete.retention.ms', limitText(deleteRetentionMs, String(LONG_MAX))],
  ])
  if (cleanup === 'compact') {
    if (ageMs === NEVER && bytes === NEVER && records === NEVER) return texts
    texts.set('cleanup.policy', 'compact,delete')
  }
  texts.set('retention.ms', limitText(ageMs))
  texts.set('retention.bytes', limitText(bytes))
  return texts.set('odradek.retention.records', limitText(records))
}

export function isSameCleaning(a: Cleaning, b: Cleaning): boolean {
  return (
    a.cleanup === b.cleanup &&
    a.deleteRetentionMs === b.deleteRetentionMs &&
    a.retention.ageMs === b.retention.ageMs &&
    a.retention.bytes === b.retention.bytes &&
    a.retention.records === b.retention.records
  )
}

function limitOf(name: CleaningConfig, text: string, least: number): number {
  const value = finite(text)
  if (value < 0) return NEVER
  if (value < least) throw invalid(`${name} is ${text}: a log that may keep nothing could take nothing`)
  return value
}

/** What is beyond all counting is without end. */
function finite(text: string): number {
  const value = Number(text)
  return value > Number.MAX_SAFE_INTEGER ? NEVER : value
}

function limitText(limit: number, never = '-1'): string {
  return limit > Number.MAX_SAFE_INTEGER ? never : String(Math.ceil(limit))
}
