import { describe, expect, it } from 'vitest'
import { type EngineTraits, retentionLimits, topicSettings } from '../../src/core/topic-settings.ts'
import type { TopicOptions } from '../../src/model/options.ts'
import { defaultCodec } from '../../src/model/value-codec.ts'
import { codeThrown } from '../support/world.ts'

const INFINITE = Number.POSITIVE_INFINITY
const MEMORY: EngineTraits = {
  scheme: 'memory',
  encodes: false,
  compacts: false,
  retention: { records: 65_536, bytes: 256 * 1024 * 1024, ageMs: INFINITE },
}
const DISK: EngineTraits = {
  scheme: 'file',
  encodes: true,
  compacts: true,
  retention: { records: INFINITE, bytes: 1024 ** 3, ageMs: INFINITE },
}

describe('the settings of a topic', () => {
  it('are, unless it says otherwise', () => {
    expect(topicSettings({}, MEMORY)).toEqual({
      partitions: 1,
      retention: { records: 65_536, bytes: 256 * 1024 * 1024, ageMs: INFINITE },
      cleanup: 'delete',
      deleteRetentionMs: 86_400_000,
      schema: null,
      dedupe: null,
      codec: defaultCodec,
      sizeOf: null,
      maxWaiting: { records: 10_000, bytes: 64 * 1024 * 1024 },
      publishTimeoutMs: 30_000,
    })
  })

  it.each<[string, TopicOptions, object]>([
    ['dedupe, as it comes', { dedupe: true }, { dedupe: { windowMs: 120_000, records: 100_000 } }],
    ['dedupe, for a time', { dedupe: { windowMs: 5 } }, { dedupe: { windowMs: 5, records: 100_000 } }],
    ['dedupe, of a number', { dedupe: { records: 5 } }, { dedupe: { windowMs: 120_000, records: 5 } }],
    ['no dedupe', { dedupe: false }, { dedupe: null }],
    ['part of the retention', { retention: { records: 5 } }, { retention: { records: 5, ageMs: INFINITE } }],
    ['records without end', { retention: { records: INFINITE } }, { retention: { records: INFINITE } }],
    ['bytes without end', { retention: { bytes: INFINITE } }, { retention: { bytes: INFINITE } }],
    ['part of the waiting', { maxWaiting: { bytes: 5 } }, { maxWaiting: { records: 10_000, bytes: 5 } }],
  ])('follow from what is said: %s', (_, options, expected) => {
    expect(topicSettings(options, MEMORY)).toMatchObject(expected)
  })

  it.each<[string, object]>([
    ['an unknown option', { partition: 2 }],
    ['partitions', { partitions: 0 }],
    ['partitions, not whole', { partitions: 1.5 }],
    ['too many partitions', { partitions: 100_001 }],
    ['retention.records', { retention: { records: 0 } }],
    ['retention without end by records and bytes', { retention: { records: INFINITE, bytes: INFINITE } }],
    ['cleanup', { cleanup: 'keep' }],
    ['deleteRetentionMs', { deleteRetentionMs: -1 }],
    ['retention.bytes', { retention: { bytes: 0 } }],
    ['retention.ageMs', { retention: { ageMs: -1 } }],
    ['retention.ageMs, not a number', { retention: { ageMs: Number.NaN } }],
    ['an unknown part of retention', { retention: { age: 5 } }],
    ['dedupe.windowMs', { dedupe: { windowMs: 0 } }],
    ['dedupe.records', { dedupe: { records: 0.5 } }],
    ['an unknown part of dedupe', { dedupe: { window: 5 } }],
    ['maxWaiting.records', { maxWaiting: { records: 0 } }],
    ['maxWaiting.bytes', { maxWaiting: { bytes: '1' } }],
    ['an unknown part of maxWaiting', { maxWaiting: { publishers: 5 } }],
    ['publishTimeoutMs', { publishTimeoutMs: 0 }],
    ['sizeOf', { sizeOf: 5 }],
    ['codec', { codec: { encode: () => {} } }],
    ['schema', { schema: { validate: () => {} } }],
    ['null', null as unknown as object],
    ['retention: null', { retention: null }],
    ['dedupe: null', { dedupe: null }],
  ])('are refused where they make no sense: %s', (_, options) => {
    expect(codeThrown(() => topicSettings(options as TopicOptions, MEMORY))).toBe('INVALID_ARGUMENT')
  })

  it('retain what the engine does, where they do not say, and on disk as much as they like', () => {
    expect(topicSettings({}, DISK).retention).toEqual(DISK.retention)
    const limits = { records: 7, bytes: INFINITE, ageMs: 1_000 }
    expect(
      topicSettings({ retention: { records: 7, bytes: INFINITE, ageMs: 1_000 } }, DISK).retention,
    ).toEqual(limits)
    const endless = { records: INFINITE, bytes: INFINITE, ageMs: INFINITE }
    expect(retentionLimits(endless, limits, DISK)).toEqual(endless)
    expect(codeThrown(() => retentionLimits(endless, MEMORY.retention, MEMORY))).toBe('INVALID_ARGUMENT')
  })

  it('compact a topic where the engine can', () => {
    const options = { cleanup: 'compact', deleteRetentionMs: 0 } as const
    expect(topicSettings(options, DISK)).toMatchObject(options)
    expect(codeThrown(() => topicSettings(options, MEMORY))).toBe('UNSUPPORTED')
  })

  it('retain all of a compacted topic, unless they say otherwise', () => {
    const endless = { records: INFINITE, bytes: INFINITE, ageMs: INFINITE }
    expect(topicSettings({ cleanup: 'compact' }, DISK).retention).toEqual(endless)
    const retention = { bytes: 5000 }
    expect(topicSettings({ cleanup: 'compact', retention }, DISK).retention).toEqual({
      ...endless,
      ...retention,
    })
  })
})
