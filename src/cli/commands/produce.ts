/** `odradek produce`: lines of standard input as records. */
import { Producer, RefusedRecords } from '../../client/producer.ts'
import { compressionNumber } from '../../log/format/compression.ts'
import { messageOf, OdradekError } from '../../model/errors.ts'
import { lazyCompression } from '../../node/compression.ts'
import { loadCrc32c } from '../../node/crc32c.ts'
import { type Arguments, argumentsOf, numberOf, pairsOf } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, type Session, withCluster } from '../cluster-options.ts'
import { type Command, type Io, OK, REFUSED, UsageError } from '../command.ts'
import { type LineRecord, lineReader } from '../line-records.ts'
import { linesOf } from '../lines.ts'
import { say } from '../printer.ts'
import { plural } from '../table.ts'

const HELP = `odradek produce: lines of standard input as records

Usage
  odradek produce [options] <topic> < file
  odradek produce [options] --json [<topic>] < file

Options
  -K, --key <delimiter>    a line is a key, the delimiter and a value; \\t is a tab
  -H, --header <name=value>
                           of every record; several times for several
  -p, --partition <n>      of every record; auto: by the key, whatever a JSON line says (default: by the key)
  --json                   a line is a record as JSON, as consume --json prints it
  -z, --compression <codec>
                           gzip, snappy, lz4 or zstd; what is not part of Node needs its package
  -q, --quiet              says nothing but what has gone wrong
  --help                   this page

${CLUSTER_HELP}

A line is a value, as the bytes that it is, without the line feed at its end; an empty line is an empty value. With
--key a line without the delimiter is refused. The broker acknowledges each record when all in-sync replicas have it.
Keys go to the partitions that Kafka's Java client chooses. A topic that does not exist is made if the broker does so.

JSON
  {"topic":"orders","partition":0,"timestamp":1700000000000,"key":"k","value":"v","headers":[["name","value"]]}
  Only value must be there; null is null, bytes are {"base64":"..."}. Headers may be an object, too. Without a topic
  on the command line each line goes to its own. offset is taken no notice of.

Standard error says how many there were, and on a terminal how many there are. A line that cannot be a record, or
that the broker refuses, ends it, with the number of the line; what was before it is produced. Ctrl-C ends the input:
what was read is sent.

Exit codes: 0 all is acknowledged; 1 a line was refused, or the broker cannot be reached; 2 wrong usage.`

const OPTIONS = {
  ...CLUSTER_OPTIONS,
  key: { type: 'string', short: 'K' },
  header: { type: 'string', short: 'H', multiple: true },
  partition: { type: 'string', short: 'p' },
  json: { type: 'boolean' },
  compression: { type: 'string', short: 'z' },
  quiet: { type: 'boolean', short: 'q' },
} as const

const PROGRESS_EVERY_MS = 200

export const produceCommand: Command = {
  help: HELP,
  failure: REFUSED,
  run: produce,
}

/** A line that cannot be a record. */
class BadLine extends Error {}

async function produce(args: readonly string[], io: Io): Promise<number> {
  const { words, options, lists } = argumentsOf(args, OPTIONS, { min: 0, max: 1, what: 'a topic' })
  const [topic] = words
  if (topic === undefined && options.json !== true) throw new UsageError('name a topic')
  const read = lineReader({
    topic,
    partition: partitionOf(options),
    delimiter: options.key === undefined ? undefined : unescaped(String(options.key)),
    headers: pairsOf('header', lists.header),
    json: options.json === true,
  })
  const compression = await codecOf(options)
  const interrupted = io.interrupted()
  return withCluster(options, io, async (session) => {
    const producer = new Producer(session.cluster, {
      clock: session.clock,
      crc32c: await loadCrc32c(),
      timeoutMs: session.timeoutMs,
      ...(compression === undefined ? {} : { compression }),
    })
    // Whether there is a broker, and a topic, is said before a person has typed a line.
    if (topic !== undefined) await session.cluster.topic(topic, true)
    const failure = await sendAll(io, session, producer, read, interrupted)
    return conclude(io, options, producer.acknowledged, failure)
  })
}

/** Answers why it ended before its time. */
async function sendAll(
  io: Io,
  { clock }: Session,
  producer: Producer,
  read: (line: Uint8Array) => LineRecord,
  interrupted: AbortSignal,
): Promise<Error | undefined> {
  const progress = new Progress(io)
  let number = 0
  let failure: Error | undefined
  try {
    for await (const line of linesOf(io.stdin(interrupted))) {
      number++
      const record = recordOf(read, line)
      await producer.send({ ...record, timestamp: record.timestamp ?? clock.now(), tag: number })
      progress.show(producer.acknowledged)
    }
  } catch (error) {
    failure = named(error, number)
  }
  try {
    await producer.flush()
  } catch (error) {
    failure = named(error, number)
  }
  progress.clear()
  return failure
}

function recordOf(read: (line: Uint8Array) => LineRecord, line: Uint8Array): LineRecord {
  try {
    return read(line)
  } catch (error) {
    throw new BadLine(messageOf(error))
  }
}

/** The same error, with the lines that it is about. @throws what is no failure of a line */
function named(error: unknown, number: number): Error {
  if (error instanceof RefusedRecords) {
    const { first, last, code, message } = error
    const lines = first === last ? `line ${first}` : `lines ${first} to ${last}`
    return new Error(`${lines}: ${code}: ${message}`)
  }
  if (error instanceof BadLine) return new Error(`line ${number}: ${error.message}`)
  if (error instanceof OdradekError) return new Error(`line ${number}: ${error.code}: ${error.message}`)
  throw error
}

async function conclude(
  io: Io,
  options: Arguments['options'],
  acknowledged: number,
  failure: Error | undefined,
): Promise<number> {
  const isTold = options.quiet !== true || failure !== undefined
  await say(
    io.stderr,
    ...(failure === undefined ? [] : [`odradek: ${failure.message}`]),
    ...(isTold ? [`${plural(acknowledged, 'record')} produced`] : []),
  )
  return failure === undefined ? OK : REFUSED
}

function partitionOf({ partition }: Arguments['options']): number | 'auto' | undefined {
  if (partition === 'auto') return 'auto'
  return numberOf('partition', partition, { min: 0, max: 2 ** 31 - 1 })
}

async function codecOf({ compression }: Arguments['options']) {
  if (compression === undefined || compression === 'none') return undefined
  const type = compressionNumber(String(compression))
  if (type === 0)
    throw new UsageError(`--compression is gzip, snappy, lz4, zstd or none; not "${compression}"`)
  const port = lazyCompression()
  await port.ready?.(type)
  // One that is missing is said now, and not at the first batch.
  port.compress(type, new Uint8Array(1))
  return { type, port }
}

function unescaped(text: string): string {
  return text.replace(/\\([tn0\\])/g, (_, letter: string) => ({ t: '\t', n: '\n', 0: '\0' })[letter] ?? '\\')
}

/** On a terminal, how many are acknowledged. */
class Progress {
  readonly #io: Io
  #nextMs: number
  #isShown = false

  constructor(io: Io) {
    this.#io = io
    this.#nextMs = io.monotonic() + PROGRESS_EVERY_MS
  }

  show(count: number): void {
    const { stderr, monotonic } = this.#io
    if (stderr.isTTY !== true || monotonic() < this.#nextMs) return
    this.#nextMs = monotonic() + PROGRESS_EVERY_MS
    this.#isShown = true
    stderr.write(`\r\x1b[K${plural(count, 'record')}`, () => {})
  }

  clear(): void {
    if (this.#isShown) this.#io.stderr.write('\r\x1b[K', () => {})
  }
}
