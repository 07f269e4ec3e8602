/** What `broker.metrics()` says must be what the model knows, counter by counter. */
import type {
  Counters,
  CursorDescription,
  MemberDescription,
  MetricsSnapshot,
  ReaderMetrics,
  TopicMetrics,
} from '../../src/model/views.ts'
import type { ModelTopic } from './logs.ts'
import { isForOthers, type Model, nameOf } from './model.ts'
import { type Counts, countNames, type ModelCursor, type ModelMember, type ModelReader } from './readers.ts'
import { isRetrying } from './rest.ts'

export function judgeLook(model: Model, metrics: MetricsSnapshot): void {
  for (const topic of metrics.topics) {
    const known = model.topics.get(topic.name)
    if (known === undefined) model.problem(`there is a topic ${topic.name}`)
    else judgeTopic(model, known, topic)
  }
  for (const reader of metrics.readers) {
    const known = model.readers.find((each) => each.name === reader.name)
    if (known === undefined) model.problem(`there is a reader ${reader.name}`)
    else judgeReader(model, known, reader)
  }
  if (metrics.readers.length !== model.readers.length) {
    const names = model.readers.map(({ name }) => name).join()
    model.problem(`there are ${metrics.readers.length} readers, not ${names}`)
  }
}

function judgeTopic(model: Model, topic: ModelTopic, seen: TopicMetrics): void {
  for (const partition of topic.partitions) {
    const { start, end, records, sizeBytes, waiting } = seen.partitions[partition.index] ?? {}
    const { line } = partition
    const expected = [
      partition.start,
      partition.end,
      partition.end - partition.start,
      partition.bytesFrom(partition.start),
      line.length,
    ]
    const found = [start, end, records, sizeBytes, waiting]
    if (String(found) !== String(expected)) model.problem(`${nameOf(partition)} is ${found}, not ${expected}`)
  }
  const published = topic.partitions.reduce((sum, { rows }) => sum + rows.length, 0)
  if (seen.published !== published) model.problem(`${topic.name} took ${seen.published}, not ${published}`)
}

function judgeReader(model: Model, reader: ModelReader, seen: ReaderMetrics): void {
  for (const member of reader.members) {
    const found = seen.members.find(({ id }) => id === member.id || reader.plan.kind !== 'group')
    if (found === undefined) model.problem(`${member.id} is no member of ${reader.life}`)
    else judgeMember(model, member, found)
  }
  const { counts, orphaned } = reader
  for (const name of countNames()) {
    const missing = seen.counters[name] - counts[name]
    if (missing > 0 && missing <= (orphaned.doubt.get(name) ?? 0)) orphaned[name] += missing
  }
  orphaned.doubt.clear()
  judgeCounts(model, reader.life, reader.counts, seen.counters)
  for (const cursor of reader.cursors.values()) {
    cursor.freshDrops = 0
    const { topic, index } = cursor.partition
    const found = seen.cursors.find((each) => each.topic === topic.name && each.partition === index)
    if (found === undefined) model.problem(`${reader.life} does not read ${nameOf(cursor.partition)}`)
    else judgeCursor(model, cursor, found)
  }
}

function judgeMember(model: Model, member: ModelMember, seen: MemberDescription): void {
  const { counts } = member
  for (const [name, doubt] of counts.doubt) {
    if (seen.counters[name] <= counts[name] + doubt)
      counts[name] = Math.max(counts[name], seen.counters[name])
  }
  counts.doubt.clear()
  judgeCounts(model, `${member.reader.life}/${member.id}`, counts, seen.counters)
  if (seen.inFlight !== member.busy) {
    model.problem(`${member.id} has ${seen.inFlight} in its hands, not ${member.busy}`)
  }
  if (seen.paused !== member.paused) model.problem(`${member.id} is paused: ${seen.paused}`)
}

function judgeCounts(model: Model, who: string, expected: Counts, seen: Counters): void {
  for (const name of countNames()) {
    if (seen[name] !== expected[name])
      model.problem(`${who} counts ${name}: ${seen[name]}, not ${expected[name]}`)
  }
}

function judgeCursor(model: Model, cursor: ModelCursor, seen: CursorDescription): void {
  const { reader, partition } = cursor
  const what = `${reader.life} at ${nameOf(partition)}`
  // Copies for others are passed by in passing.
  const committed = model.needs(cursor, 'lowest')
  const most = model.needs(cursor, 'highest')
  if (seen.committed < committed || seen.committed > most) {
    model.problem(`${what} is committed to ${seen.committed}, not ${committed}`)
  }
  for (const fate of cursor.open) if (fate.row.offset < seen.committed && isForOthers(fate)) model.pass(fate)
  const inFlight = cursor.inFlight.length
  if (seen.inFlight !== inFlight) model.problem(`${what} has ${seen.inFlight} in flight, not ${inFlight}`)
  const retrying = cursor.fates.filter((fate) => isRetrying(model, fate)).length
  if (seen.retrying > retrying) model.problem(`${what} has ${seen.retrying} retrying, not ${retrying}`)
  if (seen.lag !== partition.end - seen.committed) model.problem(`${what} lags by ${seen.lag}`)
  if (seen.gating !== model.holds(reader, partition.topic)) model.problem(`${what} is gating: ${seen.gating}`)
}
