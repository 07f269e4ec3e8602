/**
 * Records as text, by a format as kcat has it:
 *
 *   %t topic      %k key        %K its length, −1 for null     %h headers, as name=value,name=value
 *   %p partition  %s value      %S its length, −1 for null     %T timestamp in milliseconds
 *   %o offset     %% a percent  \n \t \r \\ \xHH, as in C
 *
 * Keys and values are written as the bytes they are; a null is nothing.
 */
import { Buffer } from 'node:buffer'
import type { FetchedRecord } from '../client/fetched.ts'
import { bytesOf, type HeaderValue } from '../model/record.ts'
import { UsageError } from './command.ts'

type Piece = string | ((record: FetchedRecord) => HeaderValue | number)

const FIELDS: Readonly<Record<string, Piece>> = {
  t: ({ topic }) => topic,
  p: ({ partition }) => partition,
  o: ({ offset }) => offset,
  T: ({ timestamp }) => timestamp,
  k: ({ key }) => key,
  s: ({ value }) => value,
  K: ({ key }) => (key === null ? -1 : bytesOf(key)),
  S: ({ value }) => (value === null ? -1 : value.length),
  h: ({ headers }) => Buffer.concat(headers.flatMap(headerBytes)),
  '%': '%',
}
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', 0: '\0' }

/** @throws UsageError */
export function recordFormat(format: string): (record: FetchedRecord) => Uint8Array {
  const pieces: Piece[] = []
  const tokens = /%(.?)|\\x([0-9a-fA-F]{2})|\\(.)|[^%\\]+|\\$/gsu
  for (const [text, field, hex, letter] of format.matchAll(tokens)) {
    if (field !== undefined) pieces.push(pieceOf(field))
    else if (hex !== undefined) pieces.push(String.fromCharCode(Number.parseInt(hex, 16)))
    else pieces.push(letter === undefined ? text : (ESCAPES[letter] ?? text))
  }
  return (record) =>
    Buffer.concat(pieces.map((piece) => bytes(typeof piece === 'string' ? piece : piece(record))))
}

function pieceOf(field: string): Piece {
  const piece = FIELDS[field]
  if (piece !== undefined) return piece
  const known = Object.keys(FIELDS).map((name) => `%${name}`)
  throw new UsageError(`--format has no %${field}; there are ${known.join(' ')}`)
}

function bytes(field: HeaderValue | number): Uint8Array {
  if (field === null) return Buffer.alloc(0)
  return typeof field === 'object' ? field : Buffer.from(String(field))
}

function headerBytes([name, value]: readonly [string, HeaderValue], index: number): Uint8Array[] {
  const before = index === 0 ? '' : ','
  return [Buffer.from(`${before}${name}=`), value === null ? Buffer.from('NULL') : bytes(value)]
}
