/** The table of topic configs is that of the code, and what the page says of defaults holds. */
import { describe, expect, it } from 'vitest'
import { DEFAULT_RETENTION_BYTES, DEFAULT_RETENTION_RECORDS, MiB } from '../../src/model/limits.ts'
import { TOPIC_CONFIGS } from '../../src/server/config-definitions.ts'
import { proseOf, rowsOf } from './markdown.ts'

const PAGE = 'docs/kafka-configs.md'

describe('docs/kafka-configs.md', () => {
  it('has a row for every config of a topic, as the code has it', () => {
    const rows = [...TOPIC_CONFIGS.values()].map(
      ({ name, type, values, fallback, hasEffect, documentation }) => [
        `\`${name}\``,
        type,
        values,
        fallback === '' ? 'empty' : `\`${fallback}\``,
        hasEffect ? 'works' : 'kept',
        documentation,
      ],
    )
    expect(rowsOf(PAGE)).toEqual(rows)
  })

  it('lists them by name', () => {
    const names = [...TOPIC_CONFIGS.keys()]
    expect(names).toEqual([...names].sort())
  })

  it('names the bounds in memory that the code has', () => {
    const records = DEFAULT_RETENTION_RECORDS.toLocaleString('en-US')
    expect(proseOf(PAGE)).toContain(`${records} records and ${DEFAULT_RETENTION_BYTES / MiB} MiB`)
  })
})
