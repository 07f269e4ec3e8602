/** Bytes as they come, as lines: without the line feed, and without a carriage return before it. */
import { Buffer } from 'node:buffer'

const LF = 10
const CR = 13

/** The last line need not end; an empty rest is no line. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let rest: Uint8Array[] = []
  for await (const chunk of chunks) {
    let from = 0
    for (let to = chunk.indexOf(LF); to >= 0; to = chunk.indexOf(LF, from)) {
      yield withoutReturn(joined([...rest, chunk.subarray(from, to)]))
      rest = []
      from = to + 1
    }
    if (from < chunk.length) rest.push(chunk.subarray(from))
  }
  if (rest.length > 0) yield joined(rest)
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces)
}

function withoutReturn(line: Uint8Array): Uint8Array {
  return line.at(-1) === CR ? line.subarray(0, -1) : line
}
