/** `odradek group describe`: members, and how far each partition is behind. */
import { committedOffsets } from '../../client/group-offsets.ts'
import { describeGroup, type GroupMemberView } from '../../client/groups.ts'
import { placeKey, type TopicPartition } from '../../client/offsets.ts'
import { argumentsOf } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, type Session, withCluster } from '../cluster-options.ts'
import { type Io, type NamedCommand, OK, REFUSED } from '../command.ts'
import { boundsOf } from '../positions.ts'
import { Printer } from '../printer.ts'
import { plural, table } from '../table.ts'

const HELP = `odradek group describe: members, and how far each partition is behind

Usage
  odradek group describe [options] <group>...

Options
  --json                   a JSON object a line and group: group, type, state, assignor, epoch, assignmentEpoch, lag,
                           members [{ memberId, instanceId, clientId, host, epoch, target }],
                           partitions [{ topic, partition, committed, end, lag, memberId }]
  --help                   this page

${CLUSTER_HELP}

Lag is what has not been read: the end of the partition less what is committed, or less its start where nothing is.
Groups of the type consumer (KIP-848) have epochs, and members that are led to a target: what they are to have once
others have given it up. Of others both are null.

Exit codes: 0 done; 1 there is no such group, or the broker cannot be reached; 2 wrong usage.`

export const describeCommand: NamedCommand = {
  name: 'describe',
  summary: 'members, and how far each partition is behind',
  help: HELP,
  failure: REFUSED,
  run: describe,
}

interface PartitionView extends TopicPartition {
  readonly committed: number | null
  readonly end: number
  readonly lag: number
  readonly memberId: string | null
}

interface Description {
  readonly group: string
  readonly type: string
  readonly state: string
  readonly assignor: string
  readonly epoch: number | null
  readonly assignmentEpoch: number | null
  readonly lag: number
  readonly members: readonly Omit<GroupMemberView, 'partitions'>[]
  readonly partitions: readonly PartitionView[]
}

async function describe(args: readonly string[], io: Io): Promise<number> {
  const types = { ...CLUSTER_OPTIONS, json: { type: 'boolean' } } as const
  const { words, options } = argumentsOf(args, types, {
    min: 1,
    max: Number.POSITIVE_INFINITY,
    what: 'a group',
  })
  const printer = new Printer(io.stdout)
  await withCluster(options, io, async (session) => {
    for (const [i, name] of words.entries()) {
      const description = await describeOne(session, name)
      if (options.json === true) await printer.line(JSON.stringify(description))
      else await printer.lines([...(i === 0 ? [] : ['']), ...linesOf(description, printer)])
    }
  })
  await printer.flush()
  return OK
}

async function describeOne({ cluster }: Session, name: string): Promise<Description> {
  const { members, ...group } = await describeGroup(cluster, name)
  const committed = await committedOffsets(cluster, name)
  const readers = new Map(
    members.flatMap(({ memberId, partitions: own }) =>
      own.map((place) => [placeKey(place), memberId] as const),
    ),
  )
  const places = new Map<string, TopicPartition>()
  for (const place of [...committed.values(), ...members.flatMap(({ partitions: own }) => own)]) {
    places.set(placeKey(place), { topic: place.topic, partition: place.partition })
  }
  const all = [...places.values()].sort((a, b) =>
    a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1,
  )
  const { starts, ends } = await boundsOf(cluster, all)
  const partitions = all.map((place): PartitionView => {
    const key = placeKey(place)
    const at = committed.get(key)?.offset
    const end = ends.get(key) ?? 0
    const lag = Math.max(end - (at ?? starts.get(key) ?? 0), 0)
    return { ...place, committed: at ?? null, end, lag, memberId: readers.get(key) ?? null }
  })
  const lag = partitions.reduce((sum, each) => sum + each.lag, 0)
  return { ...group, lag, members: members.map(({ partitions: _, ...member }) => member), partitions }
}

function linesOf(description: Description, printer: Printer): string[] {
  const { group, type, state, assignor, epoch, assignmentEpoch, lag, members } = description
  const facts = [
    ['type', type],
    ['state', state],
    ...(epoch === null ? [] : [['epoch', `${epoch}, assigned ${assignmentEpoch}`]]),
    ['members', plural(members.length, 'member')],
    ['assignor', assignor === '' ? '-' : assignor],
    ['lag', plural(lag, 'offset')],
  ]
  const tables = [partitionRows(description), memberRows(description)].filter(({ rows }) => rows.length > 1)
  const lists = tables.flatMap(({ rows, right }) => ['', ...table(rows, right)])
  return [printer.styled('bold', group), ...table(facts), ...lists]
}

interface Rows {
  readonly rows: readonly (readonly string[])[]
  /** Columns that are flush right. */
  readonly right: readonly number[]
}

function partitionRows({ members, partitions }: Description): Rows {
  const owners = new Map(members.map((member) => [member.memberId, member]))
  const rows = partitions.map(({ topic, partition, committed, end, lag, memberId }) => {
    const { clientId = '-', host = '-' } = owners.get(memberId ?? '') ?? {}
    return [topic, `${partition}`, `${committed ?? '-'}`, `${end}`, `${lag}`, clientId, host, memberId ?? '-']
  })
  const head = ['TOPIC', 'PARTITION', 'COMMITTED', 'END', 'LAG', 'CLIENT', 'HOST', 'MEMBER']
  return { rows: [head, ...rows], right: [1, 2, 3, 4] }
}

/** Those of modern groups: all of them, also those that have nothing. */
function memberRows({ members, partitions }: Description): Rows {
  const rows = members.flatMap(({ memberId, instanceId, clientId, epoch, target }) => {
    if (epoch === null || target === null) return []
    const own = partitions.filter((each) => each.memberId === memberId)
    return [[memberId, instanceId ?? '-', clientId, `${epoch}`, placesText(own), placesText(target)]]
  })
  return { rows: [['MEMBER', 'INSTANCE', 'CLIENT', 'EPOCH', 'HAS', 'TO HAVE'], ...rows], right: [3] }
}

/** `orders 0,1,4; invoices 0` */
function placesText(places: readonly TopicPartition[]): string {
  const byTopic = new Map<string, number[]>()
  for (const { topic, partition } of places) {
    const partitions = byTopic.get(topic)
    if (partitions === undefined) byTopic.set(topic, [partition])
    else partitions.push(partition)
  }
  const texts = [...byTopic].map(([topic, partitions]) => {
    return `${topic} ${partitions.sort((a, b) => a - b).join(',')}`
  })
  return texts.length === 0 ? '-' : texts.join('; ')
}
