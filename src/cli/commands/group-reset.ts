/** `odradek group reset`: moves where a group goes on reading. */
import { isNotTheOne, type KafkaCluster, kafkaError } from '../../client/cluster.ts'
import { commitOffsets, committedOffsets, type GroupOffset } from '../../client/group-offsets.ts'
import { describeGroup } from '../../client/groups.ts'
import { placeKey, type TopicPartition } from '../../client/offsets.ts'
import { OdradekError } from '../../model/errors.ts'
import { argumentsOf } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, withCluster } from '../cluster-options.ts'
import { type Io, type NamedCommand, OK, REFUSED, UsageError } from '../command.ts'
import { position } from '../offset-range.ts'
import { boundsOf, offsetsAt } from '../positions.ts'
import { Printer, say } from '../printer.ts'
import { table } from '../table.ts'

const HELP = `odradek group reset: moves where a group goes on reading

Usage
  odradek group reset [options] --to <where> <group>

Options
  --to <where>             start, end, an offset N, +N and -N (behind the start, before the end), or @time:
                           milliseconds, an ISO date or so long ago, as @-1h
  --topic <topic>          this topic, also one that the group has not read yet; several times for several (default:
                           all in which the group has committed)
  --execute                does it; without it, only shows what it would do
  --json                   a JSON object a line: topic, partition, from, to
  --help                   this page

${CLUSTER_HELP}

A group with members is refused: they would go on where they are, and commit over it. End them first.
An offset outside of the partition is moved to its start or end.

Exit codes: 0 done; 1 the group has members, there is no such topic, or the broker cannot be reached; 2 wrong usage.`

const OPTIONS = {
  ...CLUSTER_OPTIONS,
  to: { type: 'string' },
  topic: { type: 'string', multiple: true },
  execute: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

export const resetCommand: NamedCommand = {
  name: 'reset',
  summary: 'moves where a group goes on reading',
  help: HELP,
  failure: REFUSED,
  run: reset,
}

interface Move extends TopicPartition {
  readonly from: number | null
  readonly to: number
}

async function reset(args: readonly string[], io: Io): Promise<number> {
  const { words, options, lists } = argumentsOf(args, OPTIONS, { min: 1, max: 1, what: 'a group' })
  const [group = ''] = words
  if (options.to === undefined) throw new UsageError('--to says where: start, end, an offset or @time')
  const execute = options.execute === true
  const moves = await withCluster(options, io, async ({ cluster, clock }) => {
    const to = position(String(options.to), clock.now())
    await assertEmpty(cluster, group)
    const committed = await committedOffsets(cluster, group)
    const places = await placesOf(cluster, lists.topic, committed, group)
    const offsets = await offsetsAt(cluster, places, to, await boundsOf(cluster, places))
    const planned = places.map((place): Move => {
      const key = placeKey(place)
      const { topic, partition } = place
      return { topic, partition, from: committed.get(key)?.offset ?? null, to: offsets.get(key) ?? 0 }
    })
    if (execute) await commit(cluster, group, planned)
    return planned
  })
  await show(io, moves, options.json === true, execute)
  return OK
}

async function show(io: Io, moves: readonly Move[], isJson: boolean, execute: boolean): Promise<void> {
  const printer = new Printer(io.stdout)
  if (isJson) await printer.lines(moves.map((move) => JSON.stringify(move)))
  else {
    const rows = moves.map(({ topic, partition, from, to }) => [
      topic,
      `${partition}`,
      `${from ?? '-'}`,
      `${to}`,
    ])
    await printer.lines(table([['TOPIC', 'PARTITION', 'FROM', 'TO'], ...rows], [1, 2, 3]))
  }
  await printer.flush()
  if (!execute) await say(io.stderr, 'Nothing is changed. To do it: --execute')
}

/** A group that does not exist has no members either: it comes to be by its offsets. */
async function assertEmpty(cluster: KafkaCluster, group: string): Promise<void> {
  try {
    const { members } = await describeGroup(cluster, group)
    if (members.length === 0) return
    const who = members.map(({ clientId, host }) => `${clientId} on ${host}`).join(', ')
    throw new OdradekError('GROUP_NOT_EMPTY', `group "${group}" has members: ${who}; end them first`)
  } catch (error) {
    if (!(error instanceof OdradekError) || error.code !== 'UNKNOWN_CONSUMER') throw error
  }
}

async function placesOf(
  cluster: KafkaCluster,
  topics: readonly string[] | undefined,
  committed: ReadonlyMap<string, GroupOffset>,
  group: string,
): Promise<TopicPartition[]> {
  const names = topics ?? [...new Set([...committed.values()].map(({ topic }) => topic))].sort()
  if (names.length === 0) {
    throw new OdradekError(
      'UNKNOWN_CONSUMER',
      `group "${group}" has committed nothing: name topics with --topic`,
    )
  }
  const places: TopicPartition[] = []
  for (const topic of names) {
    const { partitions } = await cluster.topic(topic)
    places.push(...partitions.map(({ partitionIndex }) => ({ topic, partition: partitionIndex })))
  }
  return places.sort((a, b) => (a.topic === b.topic ? a.partition - b.partition : 0))
}

async function commit(cluster: KafkaCluster, group: string, moves: readonly Move[]): Promise<void> {
  const offsets = moves.map(({ topic, partition, to }) => ({ topic, partition, offset: to }))
  const errorCode = await commitOffsets(cluster, group, offsets)
  if (errorCode !== 0)
    throw kafkaError(errorCode, `group "${group}"`, isNotTheOne(errorCode) ? 'try again' : null)
}
