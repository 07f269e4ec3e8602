/** Brokers that answer less than was asked, or what nobody would expect: that is said, and nothing is made up. */
import { describe, expect, it } from 'vitest'
import { Fetcher, type ReadFrom } from '../../src/client/fetcher.ts'
import { commitOffsets, committedOffsets } from '../../src/client/group-offsets.ts'
import { deleteGroup, describeGroup } from '../../src/client/groups.ts'
import { END, offsetsFor } from '../../src/client/offsets.ts'
import {
  changeConfigs,
  createTopics,
  deleteTopics,
  listTopics,
  topicConfigs,
} from '../../src/client/topics.ts'
import { BatchBuilder } from '../../src/log/format/batch-builder.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { listOffsets } from '../../src/wire/messages/02-list-offsets.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { offsetCommit } from '../../src/wire/messages/08-offset-commit.ts'
import { offsetFetch } from '../../src/wire/messages/09-offset-fetch.ts'
import { describeGroups } from '../../src/wire/messages/15-describe-groups.ts'
import { createTopics as createApi } from '../../src/wire/messages/19-create-topics.ts'
import { deleteTopics as deleteApi } from '../../src/wire/messages/20-delete-topics.ts'
import { describeConfigs } from '../../src/wire/messages/32-describe-configs.ts'
import { deleteGroups } from '../../src/wire/messages/42-delete-groups.ts'
import { incrementalAlterConfigs } from '../../src/wire/messages/44-incremental-alter-configs.ts'
import { consumerGroupDescribe } from '../../src/wire/messages/69-consumer-group-describe.ts'
import { formats, textOf } from './kit.ts'
import { StrangeBroker } from './strange-broker.ts'

const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAAw'
const UNKNOWN = { code: 'REFUSED', message: expect.stringContaining('UNKNOWN_SERVER_ERROR') }

/** A topic `t` of one partition, which the broker leads. */
function withTopic(broker: () => StrangeBroker): object {
  const topicId = TOPIC_ID
  const partitions = [{ errorCode: 0, partitionIndex: 0, leaderId: 0, replicaNodes: [0], isrNodes: [0] }]
  return { brokers: broker().brokers, topics: [{ errorCode: 0, name: 't', topicId, partitions }] }
}

describe('a broker that leaves out what it was asked for', () => {
  it('of topics, has failed at them', async () => {
    await using broker = await StrangeBroker.start(
      [createApi, { topics: [] }],
      [deleteApi, { responses: [] }],
      [describeConfigs, { results: [] }],
      [incrementalAlterConfigs, { responses: [] }],
    )
    const { cluster } = broker
    const topic = { name: 't', partitions: 1, replicas: -1, configs: [] }
    const made = await createTopics(cluster, [topic], { timeoutMs: 1, validateOnly: false })
    expect(made).toMatchObject([{ name: 't', error: UNKNOWN, partitions: -1 }])
    expect(await deleteTopics(cluster, ['t'], 1)).toMatchObject([{ name: 't', error: UNKNOWN }])
    await expect(topicConfigs(cluster, 't')).rejects.toMatchObject(UNKNOWN)
    await expect(changeConfigs(cluster, 't', [['a', 'b']])).rejects.toMatchObject(UNKNOWN)
    await expect(cluster.topic('t')).rejects.toMatchObject({ code: 'UNKNOWN_TOPIC' })
  })

  it('of groups, knows of none', async () => {
    await using broker = await StrangeBroker.start(
      [describeGroups, { groups: [] }],
      [consumerGroupDescribe, { groups: [] }],
      [deleteGroups, { results: [] }],
    )
    await expect(describeGroup(broker.cluster, 'g')).rejects.toMatchObject({ code: 'UNKNOWN_CONSUMER' })
    expect(await deleteGroup(broker.cluster, 'g')).toMatchObject(UNKNOWN)
  })

  it('of offsets, has not got the partition', async () => {
    await using broker: StrangeBroker = await StrangeBroker.start(
      [metadata, () => withTopic(() => broker)],
      [listOffsets, { topics: [] }],
    )
    const asked = offsetsFor(broker.cluster, [{ topic: 't', partition: 0, timestamp: END }])
    await expect(asked).rejects.toMatchObject({ code: 'UNKNOWN_TOPIC' })
  })
})

describe('a broker whose records are wrong', () => {
  const batch = (count: number): Uint8Array => {
    const builder = new BatchBuilder()
    builder.open(0, 1)
    for (let i = 0; i < count; i++) builder.add(new TextEncoder().encode(`v${i}`), null, null, 1)
    return builder.finish({ leaderEpoch: -1 })
  }

  /** Answers a fetch of `t/0`, and then nothing more. */
  async function read(
    answer: object,
    from: Partial<ReadFrom> = {},
    whole: object = {},
  ): Promise<(string | null)[]> {
    const partition = { partitionIndex: 0, errorCode: 0, highWatermark: 9, abortedTransactions: null }
    const responses = [{ topic: 't', topicId: TOPIC_ID, partitions: [{ ...partition, ...answer }] }]
    await using broker: StrangeBroker = await StrangeBroker.start(
      [metadata, () => withTopic(() => broker)],
      [fetch, { errorCode: 0, responses, ...whole }],
    )
    const place = { topic: 't', partition: 0, offset: 0, end: 1, ...from }
    const records: (string | null)[] = []
    const fetcher = new Fetcher(broker.cluster, [place], formats)
    for await (const each of fetcher.run(new AbortController().signal))
      records.push(...each.records.map(textOf))
    return records
  }

  it('gives more than was asked for: what lies before and behind is left out', async () => {
    expect(await read({ records: batch(3) }, { offset: 1, end: 2 })).toEqual(['v1'])
  })

  it('gives what is damaged: nothing of that is shown', async () => {
    const damaged = batch(1)
    damaged[damaged.length - 1] = (damaged[damaged.length - 1] as number) ^ 1
    await expect(read({ records: damaged })).rejects.toMatchObject({
      code: 'CORRUPT_LOG',
      message: expect.stringMatching(/^t\/0 after offset -1: /),
    })
  })

  it('fails at all of it: its error is told', async () => {
    await expect(read({}, {}, { errorCode: 29 })).rejects.toMatchObject({
      message: expect.stringContaining('TOPIC_AUTHORIZATION_FAILED'),
    })
  })
})

describe('a broker that answers otherwise than ours', () => {
  it('has topics in any order, and some without a name', async () => {
    const topics = [
      { errorCode: 0, name: 'b', partitions: [] },
      { errorCode: 100, name: null, partitions: [] },
      { errorCode: 0, name: 'a', partitions: [] },
      { errorCode: 0, name: 'c', partitions: [] },
    ]
    await using broker: StrangeBroker = await StrangeBroker.start([
      metadata,
      () => ({ brokers: broker.brokers, topics }),
    ])
    expect((await listTopics(broker.cluster)).map(({ name }) => name)).toEqual([null, 'a', 'b', 'c'])
  })

  it('has configs in any order', async () => {
    const config = { value: 'v', configSource: 5, readOnly: false, isSensitive: false, synonyms: [] }
    const configs = ['b', 'c', 'a'].map((name) => ({ ...config, name }))
    const result = { errorCode: 0, errorMessage: null, resourceType: 2, resourceName: 't', configs }
    await using broker = await StrangeBroker.start([describeConfigs, { results: [result] }])
    expect((await topicConfigs(broker.cluster, 't')).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  it('says of partitions that nothing is committed there', async () => {
    const partitions = [
      { partitionIndex: 0, committedOffset: -1, metadata: '', errorCode: 0 },
      { partitionIndex: 1, committedOffset: 4, metadata: '', errorCode: 0 },
    ]
    const groups = [{ groupId: 'g', topics: [{ name: 't', partitions }], errorCode: 0 }]
    await using broker = await StrangeBroker.start([offsetFetch, { groups }], [offsetCommit, { topics: [] }])
    const committed = await committedOffsets(broker.cluster, 'g')
    expect([...committed.values()]).toEqual([{ topic: 't', partition: 1, offset: 4 }])
    expect(await commitOffsets(broker.cluster, 'g', [{ topic: 't', partition: 1, offset: 4 }])).toBe(0)
  })

  it('refuses to tell of a group whose broker assigns, and says why', async () => {
    const group = { errorCode: 30, errorMessage: 'not for you', groupId: 'g' }
    const told = { groupState: '', groupEpoch: 0, assignmentEpoch: 0, assignorName: '', members: [] }
    await using broker = await StrangeBroker.start(
      [consumerGroupDescribe, { groups: [{ ...group, ...told }] }],
      [describeGroups, { groups: [] }],
    )
    await expect(describeGroup(broker.cluster, 'g')).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(/GROUP_AUTHORIZATION_FAILED: not for you/),
    })
  })

  it('has groups of other things than consumers, whose members’ share is not ours to read', async () => {
    const member = {
      memberId: 'm',
      groupInstanceId: null,
      clientId: 'connect',
      clientHost: '/10.0.0.1',
      memberMetadata: Buffer.alloc(0),
      memberAssignment: Buffer.from('whatever'),
    }
    const group = {
      errorCode: 0,
      groupId: 'g',
      groupState: 'Stable',
      protocolType: 'connect',
      protocolData: 'x',
    }
    await using broker = await StrangeBroker.start([
      describeGroups,
      { groups: [{ ...group, members: [member] }] },
    ])
    expect(await describeGroup(broker.cluster, 'g')).toMatchObject({
      type: 'classic',
      members: [{ host: '10.0.0.1', clientId: 'connect', partitions: [] }],
    })
  })
})
