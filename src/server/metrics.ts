/**
 * What a server says of itself to Prometheus: topics, partitions and groups by the names of kafka_exporter, so that its
 * dashboards and alerts fit; and of the server, by names of our own. Computed when it is asked for; nothing is kept.
 */
import type { Topic } from '../core/topic.ts'
import { refusalError } from '../log/contract.ts'
import { kafkaErrorName } from '../wire/errors.ts'
import { Exposition, type Labels } from './exposition.ts'
import { BUCKETS_S, type Traffic } from './traffic.ts'
import type { World } from './world.ts'

/** Of the server, beside its world. */
export interface Gauges {
  readonly connections: number
  readonly bufferedBytes: number
}

type Sample = readonly [Labels, number]

export function exposition(
  world: World,
  traffic: Traffic,
  { connections, bufferedBytes }: Gauges,
  to: Exposition = new Exposition(),
): string {
  const { nodes } = world.cluster
  // What is of the server is first: it is there however many partitions there are.
  to.family('odradek_connections', 'gauge', 'Clients that are connected.', [[{}, connections]])
  to.family('odradek_buffered_bytes', 'gauge', 'Bytes of requests and responses in memory.', [
    [{}, bufferedBytes],
  ])
  to.family('odradek_received_bytes_total', 'counter', 'Bytes of requests.', [[{}, traffic.receivedBytes]])
  to.family('odradek_sent_bytes_total', 'counter', 'Bytes of responses.', [[{}, traffic.sentBytes]])
  requests(traffic, to)
  to.family('kafka_brokers', 'gauge', 'Brokers of the cluster.', [[{}, nodes.length]])
  partitions(world, to)
  groups(world, to)
  to.family('odradek_samples_left_off', 'gauge', 'Samples beyond the bound of this page.', [[{}, to.leftOff]])
  return to.toString()
}

function requests(traffic: Traffic, to: Exposition): void {
  const apis = [...traffic.apis()]
  const of = (value: (api: (typeof apis)[number]) => number): Sample[] =>
    apis.map((api) => [{ api: api.name }, value(api)])
  to.family(
    'odradek_requests_total',
    'counter',
    'Requests that were answered or failed.',
    of((api) => api.requests),
  )
  to.family(
    'odradek_failed_requests_total',
    'counter',
    'Requests whose connection was closed instead of an answer.',
    of((api) => api.failed),
  )
  to.family(
    'odradek_errors_total',
    'counter',
    'Error codes in responses, each partition for itself.',
    apis.flatMap(({ name, errors }) =>
      [...errors].map(([code, count]): Sample => [{ api: name, error: kafkaErrorName(code) }, count]),
    ),
  )
  const name = 'odradek_request_seconds'
  to.header(name, 'histogram', 'How long requests took, waiting included.')
  for (const api of apis) {
    let sum = 0
    for (const [i, count] of api.buckets.entries()) {
      sum += count
      to.sample(`${name}_bucket`, { api: api.name, le: BUCKETS_S[i] ?? '+Inf' }, sum)
    }
    to.sample(`${name}_sum`, { api: api.name }, api.secondsSum)
    to.sample(`${name}_count`, { api: api.name }, api.requests)
  }
}

function partitions({ parts, cluster }: World, to: Exposition): void {
  const topics = parts.topics.list()
  const each = (value: (topic: Topic, index: number) => number): Iterable<Sample> =>
    (function* () {
      for (const topic of topics) {
        for (const { index } of topic.partitions) {
          yield [{ topic: topic.name, partition: index }, value(topic, index)]
        }
      }
    })()
  const one = (): number => 1
  const name = (what: string): string => `kafka_topic_partition${what}`
  to.family(
    'kafka_topic_partitions',
    'gauge',
    'Partitions of the topic.',
    topics.map((topic): Sample => [{ topic: topic.name }, topic.partitions.length]),
  )
  to.family(
    name('_current_offset'),
    'gauge',
    'Where the next record goes.',
    each((topic, index) => topic.partitionAt(index).log.marks.high),
  )
  to.family(
    name('_oldest_offset'),
    'gauge',
    'The first record that there is.',
    each((topic, index) => topic.partitionAt(index).log.marks.start),
  )
  to.family(
    name('_leader'),
    'gauge',
    'The broker that leads it.',
    each((topic, index) => cluster.leaderOf(topic.id, index).id),
  )
  to.family(name('_leader_is_preferred'), 'gauge', 'Whether that is the preferred one.', each(one))
  to.family(name('_replicas'), 'gauge', 'Its replicas.', each(one))
  to.family(name('_in_sync_replica'), 'gauge', 'Those that are in sync.', each(one))
  to.family(
    name('_under_replicated_partition'),
    'gauge',
    'Whether some are not.',
    each(() => 0),
  )
}

interface Progress {
  readonly labels: { readonly consumergroup: string; readonly topic: string; readonly partition: number }
  readonly offset: number
  readonly lag: number
}

function groups({ parts }: World, to: Exposition): void {
  const classic = [...parts.groups.all()].map(({ name, members }): [string, number] => [name, members.size])
  const inProcess = [...parts.readers.all()]
    .filter(({ kind, remote }) => kind !== 'broadcast' && remote === null)
    .map(({ name, members }): [string, number] => [name, members.length])
  const members = new Map([...classic, ...inProcess])
  // There may be offsets of a group that has neither members nor a name but theirs.
  const names = new Set([...members.keys(), ...parts.groupOffsets.stored().keys()])
  const progress = [...names].flatMap((name) => progressOf(name, parts))
  const name = (what: string): string => `kafka_consumergroup${what}`
  to.family(
    name('_members'),
    'gauge',
    'Members of the group.',
    [...names].map((group): Sample => [{ consumergroup: group }, members.get(group) ?? 0]),
  )
  to.family(
    name('_current_offset'),
    'gauge',
    'What the group has committed.',
    progress.map(({ labels, offset }): Sample => [labels, offset]),
  )
  to.family(
    name('_lag'),
    'gauge',
    'Records that it has not committed.',
    progress.map(({ labels, lag }): Sample => [labels, lag]),
  )
  to.family(name('_current_offset_sum'), 'gauge', 'The same, of the topic.', sums(progress, 'offset'))
  to.family(name('_lag_sum'), 'gauge', 'The same, of the topic.', sums(progress, 'lag'))
}

function progressOf(group: string, { groupOffsets, topics }: World['parts']): Progress[] {
  return groupOffsets.all(group).flatMap(({ topicId, partition, offset }): Progress[] => {
    const topic = topics.byId(topicId)
    const log = topic?.partitions[partition]?.log
    if (topic === undefined || log === undefined) return []
    const labels = { consumergroup: group, topic: topic.name, partition }
    return [{ labels, offset, lag: Math.max(log.marks.high - offset, 0) }]
  })
}

function sums(progress: readonly Progress[], what: 'offset' | 'lag'): Iterable<Sample> {
  const byTopic = new Map<string, [Labels, number]>()
  for (const { labels, ...values } of progress) {
    const { consumergroup, topic } = labels
    const key = JSON.stringify([consumergroup, topic])
    const [, sum] = byTopic.get(key) ?? [{}, 0]
    byTopic.set(key, [{ consumergroup, topic }, sum + values[what]])
  }
  return byTopic.values()
}

/** Why what clients send cannot be stored; undefined where it can. */
export function unready({ parts: { engine, topics } }: World): string | undefined {
  const logs = topics.list().flatMap(({ partitions: all }) => all.map(({ log }) => log))
  for (const log of logs) {
    const refusal = engine.refusal([log], 0)
    if (refusal !== undefined && refusal !== 'NO_ROOM')
      return refusalError(refusal, 'records cannot be stored').message
  }
  return undefined
}
