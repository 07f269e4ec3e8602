/** `odradek consume`: the records of topics, as text or JSON; alone, or as a member of a group. */
import { type KafkaCluster, noSuchPartition } from '../../client/cluster.ts'
import { Fetcher } from '../../client/fetcher.ts'
import { type Isolation, placeKey, type TopicPartition } from '../../client/offsets.ts'
import { lazyCompression } from '../../node/compression.ts'
import { loadCrc32c } from '../../node/crc32c.ts'
import { type Arguments, argumentsOf, numberOf } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, type Session, withCluster } from '../cluster-options.ts'
import { type Command, type Io, OK, REFUSED, UsageError } from '../command.ts'
import { consumeAsMember } from '../consume-group.ts'
import { type OffsetRange, offsetRange } from '../offset-range.ts'
import { boundsOf, offsetsAt } from '../positions.ts'
import { Printer, say } from '../printer.ts'
import { recordFormat } from '../record-format.ts'
import { recordJson } from '../record-json.ts'
import { RecordPrinter } from '../record-printer.ts'

const HELP = `odradek consume: the records of topics

Usage
  odradek consume [options] <topic>...

Options
  -o, --offset <where>     start (default), end, an offset N, N:M (before M), +N and -N (behind the start, before the
                           end), @time, @time:time; a time is milliseconds, an ISO date or -1h (s, m, h, d)
  -n, --num <count>        ends after so many
  -e, --exit               ends when it has read all that was there when it began
  -p, --partitions <list>  these only, such as 0,2
  -g, --group <name>       as a member of this group: it reads its share from where the group is, or from --offset
                           where the group has not been, and commits what it has printed
  -f, --format <text>      as kcat has it: %t topic, %p partition, %o offset, %k key, %s value, %h headers,
                           %T timestamp, %K and %S the lengths of key and value, %% \\n \\t \\xHH
  --json                   a JSON object a line: topic, partition, offset, timestamp, key, value, headers
  --uncommitted            also what belongs to transactions that are open, or were aborted
  --help                   this page

${CLUSTER_HELP}

Output is values, a line each, on a terminal, and JSON everywhere else. JSON loses nothing: bytes that are not UTF-8
are {"base64":"..."}, headers are pairs in their order, and produce --json makes the same records of it.

It goes on until Ctrl-C, unless --num, --exit or the end of --offset comes before. Order is that of the partition;
partitions are mixed. With --group a record is printed at least once: what is printed and not committed yet when the
process is killed is printed again by whoever comes next.

Exit codes: 0 ended as asked, also by Ctrl-C; 1 there is no such topic or partition, or the broker cannot be reached;
2 wrong usage; 141 nobody reads the output any more.`

const OPTIONS = {
  ...CLUSTER_OPTIONS,
  offset: { type: 'string', short: 'o' },
  num: { type: 'string', short: 'n' },
  exit: { type: 'boolean', short: 'e' },
  partitions: { type: 'string', short: 'p' },
  group: { type: 'string', short: 'g' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  uncommitted: { type: 'boolean' },
} as const

export const consumeCommand: Command = {
  help: HELP,
  failure: REFUSED,
  run: consume,
}

async function consume(args: readonly string[], io: Io): Promise<number> {
  const { words, options } = argumentsOf(args, OPTIONS, {
    min: 1,
    max: Number.POSITIVE_INFINITY,
    what: 'a topic',
  })
  const topics = [...new Set(words)]
  const printed = new RecordPrinter(new Printer(io.stdout), writerOf(io, options), limitOf(options))
  const partitions = partitionsOf(options)
  const isolation: Isolation = options.uncommitted === true ? 'read_uncommitted' : 'read_committed'
  const formats = { compression: lazyCompression(), crc32c: await loadCrc32c(), isolation }
  const interrupted = io.interrupted()
  return withCluster(options, io, async (session) => {
    const range = offsetRange(String(options.offset ?? 'start'), session.clock.now())
    const { group } = options
    if (group !== undefined) {
      const what = { group: String(group), topics, from: range.from, formats }
      if (partitions !== undefined)
        throw new UsageError('--partitions does not go with --group: the group has its own')
      if (range.to !== undefined) throw new UsageError('the end of a range does not go with --group')
      await consumeAsMember(io, session, { ...what, untilEnd: options.exit === true }, printed, interrupted)
    } else {
      const places = await placesOf(session.cluster, topics, partitions)
      const from = await rangesOf(session, places, range, isolation, options.exit === true)
      const fetcher = new Fetcher(session.cluster, from, formats)
      for await (const { records, skipped, topic, partition } of fetcher.run(interrupted)) {
        if (skipped > 0) {
          const what = `${skipped} offsets were gone before they were read`
          await say(io.stderr, `odradek: ${topic}/${partition}: ${what}`)
        }
        await printed.print(records)
        if (printed.isFull) break
      }
    }
    return OK
  })
}

function writerOf({ stdout }: Io, { format, json }: Arguments['options']): RecordPrinter['write'] {
  if (format !== undefined && json === true) throw new UsageError('--format and --json: one of them')
  if (format !== undefined) {
    const formatted = recordFormat(String(format))
    return (record, printer) => printer.bytes(formatted(record))
  }
  if (json === true || stdout.isTTY !== true) return (record, printer) => printer.line(recordJson(record))
  const formatted = recordFormat('%s\\n')
  return (record, printer) => printer.bytes(formatted(record))
}

function limitOf({ num }: Arguments['options']): number {
  return numberOf('num', num, { min: 1, max: Number.MAX_SAFE_INTEGER }) ?? Number.POSITIVE_INFINITY
}

function partitionsOf({ partitions }: Arguments['options']): readonly number[] | undefined {
  if (partitions === undefined) return undefined
  const numbers = String(partitions)
    .split(',')
    .map((text) => (/^\d{1,9}$/.test(text) ? Number(text) : Number.NaN))
  if (!numbers.some(Number.isNaN)) return [...new Set(numbers)]
  throw new UsageError(`--partitions is a list such as 0,2; not "${partitions}"`)
}

async function placesOf(
  cluster: KafkaCluster,
  topics: readonly string[],
  partitions: readonly number[] | undefined,
): Promise<TopicPartition[]> {
  const places: TopicPartition[] = []
  for (const topic of topics) {
    const there = (await cluster.topic(topic)).partitions
      .map(({ partitionIndex }) => partitionIndex)
      .sort((a, b) => a - b)
    const missing = partitions?.find((partition) => !there.includes(partition))
    if (missing !== undefined) throw noSuchPartition(topic, there.length, missing)
    places.push(...(partitions ?? there).map((partition) => ({ topic, partition })))
  }
  return places
}

async function rangesOf(
  { cluster }: Session,
  places: readonly TopicPartition[],
  { from, to }: OffsetRange,
  isolation: Isolation,
  untilEnd: boolean,
): Promise<(TopicPartition & { offset: number; end: number | undefined })[]> {
  const bounds = await boundsOf(cluster, places, isolation)
  const begins = await offsetsAt(cluster, places, from, bounds)
  const ends = to === undefined ? undefined : await endsOf(cluster, places, to, bounds, untilEnd)
  return places.map((place) => {
    const key = placeKey(place)
    const last = untilEnd ? bounds.ends.get(key) : undefined
    return { ...place, offset: begins.get(key) ?? 0, end: ends?.get(key) ?? last }
  })
}

/** An offset may lie ahead: it is waited for, unless it is to end with what is there. */
async function endsOf(
  cluster: KafkaCluster,
  places: readonly TopicPartition[],
  to: NonNullable<OffsetRange['to']>,
  bounds: Awaited<ReturnType<typeof boundsOf>>,
  untilEnd: boolean,
): Promise<Map<string, number>> {
  if (to.at !== 'offset' || untilEnd) return offsetsAt(cluster, places, to, bounds)
  return new Map(places.map((place) => [placeKey(place), to.offset]))
}
