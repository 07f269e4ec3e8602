/** What a line of standard input is as a record. */
import { Buffer } from 'node:buffer'
import { type Key, RecordHeaders } from '../model/record.ts'
import { recordOfJson } from './record-json.ts'

export interface LineRecord {
  readonly topic: string
  /** Null: by the key. */
  readonly partition: number | null
  readonly key: Key | null
  readonly value: Uint8Array | null
  readonly headers: RecordHeaders | null
  /** Undefined: now. */
  readonly timestamp: number | undefined
}

export interface LineOptions {
  readonly topic: string | undefined
  readonly partition: number | 'auto' | undefined
  /** Between key and value; undefined where there are values alone. */
  readonly delimiter: string | undefined
  /** Of every record, behind its own. */
  readonly headers: readonly (readonly [string, string])[]
  readonly json: boolean
}

const decoder = new TextDecoder()

/** The reader's errors say what is wrong with a line. */
export function lineReader(options: LineOptions): (line: Uint8Array) => LineRecord {
  return options.json ? jsonReader(options) : textReader(options)
}

function jsonReader({ topic, partition, headers }: LineOptions): (line: Uint8Array) => LineRecord {
  return (line) => {
    const record = recordOfJson(decoder.decode(line))
    const to = topic ?? record.topic
    if (to === undefined) throw new Error('it has no "topic", and the command line names none')
    const own = partition === undefined ? (record.partition ?? null) : null
    return {
      ...record,
      topic: to,
      partition: typeof partition === 'number' ? partition : own,
      headers:
        headers.length === 0 ? record.headers : new RecordHeaders([...(record.headers ?? []), ...headers]),
    }
  }
}

function textReader({
  topic = '',
  partition,
  delimiter,
  headers,
}: LineOptions): (line: Uint8Array) => LineRecord {
  const between = delimiter === undefined ? undefined : Buffer.from(delimiter)
  const common = {
    topic,
    partition: typeof partition === 'number' ? partition : null,
    headers: headers.length === 0 ? null : new RecordHeaders(headers),
    timestamp: undefined,
  }
  return (line) => {
    if (between === undefined) return { ...common, key: null, value: line }
    const at = Buffer.from(line.buffer, line.byteOffset, line.length).indexOf(between)
    if (at < 0) throw new Error(`it has no ${JSON.stringify(delimiter)} between a key and a value`)
    return { ...common, key: line.subarray(0, at), value: line.subarray(at + between.length) }
  }
}
