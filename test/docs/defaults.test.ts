/** Defaults and bounds that the guide names are those of the code. */
import { describe, expect, it } from 'vitest'
import * as limits from '../../src/model/limits.ts'
import { DEFAULT_BOUNDS } from '../../src/server/bounds.ts'
import * as server from '../../src/server/limits.ts'
import { proseOf } from './markdown.ts'

const number = (value: number): string => value.toLocaleString('en-US')
const mib = (bytes: number): string => `${bytes / limits.MiB} MiB`
const gib = (bytes: number): string => `${bytes / (1024 * limits.MiB)} GiB`
const seconds = (ms: number): string => `${ms / 1_000} seconds`

const CLAIMS: readonly (readonly [page: string, text: string])[] = [
  [
    'getting-started',
    `${number(limits.DEFAULT_RETENTION_RECORDS)} records or ${mib(limits.DEFAULT_RETENTION_BYTES)} per`,
  ],
  ['getting-started', `(\`drainMs\`, ${seconds(limits.DEFAULT_DRAIN_MS)})`],
  ['topics-and-publishing', `up to ${number(limits.MAX_PARTITIONS)}; can be added`],
  [
    'topics-and-publishing',
    `| ${number(limits.DEFAULT_RETENTION_RECORDS)}, ${mib(limits.DEFAULT_RETENTION_BYTES)}, no limit; ` +
      `on disk no limit, ${gib(limits.DEFAULT_FILE_RETENTION_BYTES)}, no limit; of a compacted topic no limit |`,
  ],
  [
    'topics-and-publishing',
    `${number(limits.DEFAULT_MAX_WAITING)} records, ${mib(limits.DEFAULT_MAX_WAITING_BYTES)}`,
  ],
  ['topics-and-publishing', `\`publishTimeoutMs\` | ${number(limits.DEFAULT_PUBLISH_TIMEOUT_MS)} |`],
  ['topics-and-publishing', `1 to ${limits.MAX_TOPIC_NAME} characters`],
  [
    'topics-and-publishing',
    `flat ${limits.FLAT_VALUE_BYTES} for everything else, plus ${limits.RECORD_OVERHEAD_BYTES} a record`,
  ],
  ['topics-and-publishing', `value, key and headers, and ${limits.ENCODED_OVERHEAD_BYTES} more a record`],
  ['topics-and-publishing', `\`deleteRetentionMs\` | ${number(limits.DEFAULT_DELETE_RETENTION_MS)} |`],
  ['subscribing', `(${limits.DEFAULT_OFFSET_RETENTION_MS / 86_400_000} days, an option of the broker)`],
  [
    'subscribing',
    `${limits.DEFAULT_RETRY_ATTEMPTS} attempts, ${limits.DEFAULT_RETRY_DELAY_MS} ms doubling to ${number(limits.DEFAULT_RETRY_MAX_DELAY_MS)} ms`,
  ],
  ['subscribing', `\`ackTimeoutMs\` | ${number(limits.DEFAULT_ACK_TIMEOUT_MS)} |`],
  ['delivery', `\`ackTimeoutMs\` (${seconds(limits.DEFAULT_ACK_TIMEOUT_MS)}`],
  ['delivery', `(${limits.MAX_NACK_DELAY_MS / 60_000} minutes at most)`],
  ['delivery', `a window of ${number(limits.MAX_WINDOW)} records`],
  [
    'overflow-and-backpressure',
    `when it passes ${limits.PRESSURE_AT}, \`drain\` when it is back at ${limits.DRAIN_AT}`,
  ],
  ['overflow-and-backpressure', `for \`graceMs\` (${seconds(limits.DEFAULT_GRACE_MS)})`],
  ['overflow-and-backpressure', 'nothing has settled for five seconds'],
  ['kafka', `\`maxRequestBytes\` | ${mib(server.DEFAULT_MAX_REQUEST_BYTES)} |`],
  ['kafka', `\`maxPlainRequestBytes\` | ${mib(server.DEFAULT_MAX_PLAIN_REQUEST_BYTES)} |`],
  ['kafka', `\`maxBufferedBytes\` | ${mib(server.DEFAULT_MAX_BUFFERED_BYTES)} |`],
  ['kafka', `\`maxConnections\` | ${number(server.DEFAULT_MAX_CONNECTIONS)} |`],
  ['kafka', `\`maxIdleMs\` | ${number(server.DEFAULT_MAX_IDLE_MS)} |`],
  ...Object.entries(DEFAULT_BOUNDS).map(([option, max]): [string, string] => [
    'kafka',
    `\`${option}\` | ${option.endsWith('Bytes') ? mib(max) : number(max)} |`,
  ]),
  ['kafka', `in all | ${number(server.MAX_REQUEST_ITEMS)} |`],
]

describe('docs/guide', () => {
  it.each(CLAIMS)('%s says "%s", as the code does', (page, text) => {
    expect(proseOf(`docs/guide/${page}.md`).replace(/\s+/g, ' ')).toContain(text)
  })

  it('counts seconds as the code does where it writes the number out', () => {
    expect(limits.STALLED_AFTER_MS).toBe(5_000)
  })
})
