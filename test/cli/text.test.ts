/** What a person writes and reads at the command line: places, formats, lines, records as JSON. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { near } from '../../src/cli/arguments.ts'
import { UsageError } from '../../src/cli/command.ts'
import { lineReader } from '../../src/cli/line-records.ts'
import { linesOf } from '../../src/cli/lines.ts'
import { offsetRange, position } from '../../src/cli/offset-range.ts'
import { recordFormat } from '../../src/cli/record-format.ts'
import { recordJson, recordOfJson } from '../../src/cli/record-json.ts'
import type { FetchedRecord } from '../../src/client/fetched.ts'
import { keyBytes, keyIdentity } from '../../src/model/record.ts'

const NOW = Date.parse('2026-01-02T00:00:00Z')
const time = (timestamp: number) => ({ at: 'time', timestamp })
const offset = (at: number) => ({ at: 'offset', offset: at })
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('an offset', () => {
  it.each([
    ['start', { at: 'start' }, undefined],
    ['beginning', { at: 'start' }, undefined],
    ['end', { at: 'end' }, undefined],
    ['7', offset(7), undefined],
    ['+7', { at: 'after-start', count: 7 }, undefined],
    ['-7', { at: 'before-end', count: 7 }, undefined],
    ['2:5', offset(2), offset(5)],
    [':5', { at: 'start' }, offset(5)],
    ['2:', offset(2), undefined],
    ['2:end', offset(2), { at: 'end' }],
    ['@1700000000000', time(1_700_000_000_000), undefined],
    ['@1700000000', time(1_700_000_000_000), undefined],
    ['@-1h', time(NOW - 3_600_000), undefined],
    ['@-30m:end', time(NOW - 1_800_000), { at: 'end' }],
    ['@-2d:-500ms', time(NOW - 172_800_000), time(NOW - 500)],
    ['@2026-01-01', time(NOW - 86_400_000), undefined],
    ['@2026-01-01T00:00:00Z:2026-01-01T12:00:00.5Z', time(NOW - 86_400_000), time(NOW - 43_199_500)],
    ['@2026-01-01T00:00Z:@2026-01-02', time(NOW - 86_400_000), time(NOW)],
    ['@:-1h', { at: 'start' }, time(NOW - 3_600_000)],
    ['@-1h:', time(NOW - 3_600_000), { at: 'end' }],
  ])('%s is understood', (text, from, to) => {
    expect(offsetRange(text, NOW)).toEqual({ from, to })
  })

  it.each([
    '',
    ':',
    'x',
    '1.5',
    '5:2',
    '--1',
    '@',
    '@x',
    '@-1y',
    '@2026-13-01',
    '99999999999999999999',
    '3:x',
  ])('"%s" is refused', (text) => {
    expect(() => offsetRange(text, NOW)).toThrow(UsageError)
  })

  it('is one place where a group is moved', () => {
    expect(position('@-1h', NOW)).toEqual(time(NOW - 3_600_000))
    expect(position('end', NOW)).toEqual({ at: 'end' })
    expect(() => position('2:5', NOW)).toThrow('--to is start, end')
    expect(() => position('@x', NOW)).toThrow('--to @x: a time is')
  })
})

function record(more: Partial<FetchedRecord> = {}): FetchedRecord {
  return {
    topic: 't',
    partition: 2,
    offset: 7,
    timestamp: 5,
    key: 'k',
    value: bytes('v'),
    headers: [],
    ...more,
  }
}

describe('a format', () => {
  const formatted = (format: string, more: Partial<FetchedRecord> = {}): string =>
    Buffer.from(recordFormat(format)(record(more))).toString('latin1')

  it('has the fields of kcat, and the escapes of C', () => {
    expect(formatted('%t/%p/%o %T %k=%s %K %S %%\\n\\t\\r\\\\\\x41\\q\\')).toBe(
      't/2/7 5 k=v 1 1 %\n\t\r\\A\\q\\',
    )
  })

  it('writes nulls as nothing and −1, bytes as they are, headers with commas', () => {
    expect(formatted('[%k][%s]%K%S', { key: null, value: null })).toBe('[][]-1-1')
    expect(formatted('%s%S', { value: Uint8Array.of(0xff, 0) })).toBe('\xff\x002')
    expect(
      formatted('%h', {
        headers: [
          ['a', '1'],
          ['b', null],
          ['c', Uint8Array.of(0xfe)],
        ],
      }),
    ).toBe('a=1,b=NULL,c=\xfe')
  })

  it('refuses a field that there is not', () => {
    expect(() => recordFormat('%x')).toThrow('--format has no %x; there are %t %p')
    expect(() => recordFormat('100%')).toThrow('--format has no %;')
  })
})

describe('lines', () => {
  async function read(...chunks: readonly string[]): Promise<string[]> {
    async function* source() {
      for (const chunk of chunks) yield bytes(chunk)
    }
    const lines: string[] = []
    for await (const line of linesOf(source())) lines.push(Buffer.from(line).toString())
    return lines
  }

  it('end with a line feed, a carriage return before it is none of theirs, and the last one need not end', async () => {
    expect(await read('a\nb\r\n\nc')).toEqual(['a', 'b', '', 'c'])
    expect(await read('a\n')).toEqual(['a'])
    expect(await read()).toEqual([])
    expect(await read('é', '\r', '\nx', 'y', 'z\n')).toEqual(['é', 'xyz'])
  })

  it('are the same wherever they are cut', async () => {
    const cut = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 8 }))
    await fc.assert(
      fc.asyncProperty(cut, async (chunks) => {
        const whole = chunks.join('')
        const lines = whole.split('\n')
        if (lines.at(-1) === '') lines.pop()
        expect(await read(...chunks)).toEqual(lines)
      }),
    )
  })

  const options = {
    topic: 't',
    partition: undefined,
    delimiter: undefined,
    headers: [],
    json: false,
  } as const

  it('are values, or keys and values, with the headers of all', () => {
    expect(lineReader(options)(bytes('a:b'))).toMatchObject({
      topic: 't',
      partition: null,
      key: null,
      value: bytes('a:b'),
    })
    const keyed = lineReader({ ...options, delimiter: '::', partition: 3, headers: [['h', '1']] })
    const { key, value, partition, headers } = keyed(bytes('a::b::c'))
    expect([key, value, partition]).toEqual([bytes('a'), bytes('b::c'), 3])
    expect(headers?.toJSON()).toEqual([['h', '1']])
    expect(() => keyed(bytes('a:b'))).toThrow('it has no "::" between a key and a value')
  })

  it('as JSON go to their own topics and partitions, unless the command line says where', () => {
    const line = bytes('{"topic":"own","partition":2,"value":"v","headers":[["a","1"]]}')
    const json = { ...options, json: true }
    expect(lineReader({ ...json, topic: undefined })(line)).toMatchObject({ topic: 'own', partition: 2 })
    expect(lineReader({ ...json, partition: 'auto' })(line)).toMatchObject({ topic: 't', partition: null })
    const { partition, headers } = lineReader({ ...json, partition: 0, headers: [['b', '2']] })(line)
    expect(partition).toBe(0)
    expect(headers?.toJSON()).toEqual([
      ['a', '1'],
      ['b', '2'],
    ])
    expect(() => lineReader({ ...json, topic: undefined })(bytes('{"value":"v"}'))).toThrow(
      'it has no "topic"',
    )
  })
})

describe('a record as JSON', () => {
  const field = fc.oneof(fc.constant(null), fc.string({ unit: 'grapheme' }), fc.uint8Array({ maxLength: 9 }))
  const asBytes = (value: string | Uint8Array | null) => (typeof value === 'string' ? bytes(value) : value)

  it('comes back equal: bytes, nulls, repeated headers', () => {
    fc.assert(
      fc.property(field, field, fc.array(fc.tuple(fc.string(), field)), (key, value, headers) => {
        const json = recordJson(record({ key, value: asBytes(value), headers }))
        expect(json).not.toContain('\n')
        const back = recordOfJson(json)
        expect(back).toMatchObject({ topic: 't', partition: 2, timestamp: 5, value: asBytes(value) })
        expect(back.key === null ? null : keyIdentity(back.key)).toBe(key === null ? null : keyIdentity(key))
        expect((back.headers?.toJSON() ?? []).map(([name, each]) => [name, asBytes(each)])).toEqual(
          headers.map(([name, each]) => [name, asBytes(each)]),
        )
      }),
    )
  })

  it('is what other tools can read', () => {
    const value = Uint8Array.of(0xff)
    expect(recordJson(record({ value, headers: [['h', keyBytes('x')]] }))).toBe(
      '{"topic":"t","partition":2,"offset":7,"timestamp":5,"key":"k","value":{"base64":"/w=="},"headers":[["h","x"]]}',
    )
  })

  it('may leave out all but the value, and have headers as an object', () => {
    expect(recordOfJson('{"value":"v"}')).toEqual({
      topic: undefined,
      partition: undefined,
      timestamp: undefined,
      key: null,
      value: bytes('v'),
      headers: null,
    })
    expect(recordOfJson('{"value":null,"headers":{"a":["1",null],"b":"2"}}').headers?.toJSON()).toEqual([
      ['a', '1'],
      ['a', null],
      ['b', '2'],
    ])
  })

  it.each([
    ['{', 'it is no JSON: '],
    ['[]', 'it is no JSON object'],
    ['{}', 'it has no "value"; a null is "value": null'],
    ['{"vlue":1}', 'unknown field "vlue"; there are topic, partition'],
    ['{"value":1}', '"value" is a string, null, or {"base64": "…"}'],
    ['{"value":{"base64":"?"}}', '"value" has a "base64" that is none'],
    ['{"value":null,"key":{}}', '"key" is a string'],
    ['{"value":null,"topic":1}', '"topic" is no string'],
    ['{"value":null,"partition":-1}', '"partition" is no whole number'],
    ['{"value":null,"headers":1}', '"headers" are pairs, or an object'],
    ['{"value":null,"headers":[["a"]]}', 'a header is a pair'],
    ['{"value":null,"headers":[["a",1]]}', '"headers.a" is a string'],
  ])('%s is refused', (line, message) => {
    expect(() => recordOfJson(line)).toThrow(message)
  })
})

describe('what was meant', () => {
  it('is the nearest word, or none', () => {
    expect(near('lst', ['create', 'list'])).toBe('list')
    expect(near('cre', ['list', 'create'])).toBe('create')
    expect(near('x', ['list'])).toBeUndefined()
    expect(near('zzzzzz', ['list'])).toBeUndefined()
  })
})
