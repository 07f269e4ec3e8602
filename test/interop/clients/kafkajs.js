/** KafkaJS, as its documentation uses it. Verbs: README.md. */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')

const [bootstrap, verb, json] = process.argv.slice(2)
const args = JSON.parse(json)
const kafka = new Kafka({
  clientId: 'interop-kafkajs',
  brokers: bootstrap.split(','),
  logLevel: logLevel.ERROR,
  logCreator: () => (entry) => console.error(JSON.stringify(entry)),
})

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
const text = (bytes) => (bytes === null || bytes === undefined ? null : bytes.toString())
const cleanups = []
process.on('SIGTERM', async () => {
  for (const cleanup of cleanups.reverse()) await cleanup().catch((error) => console.error(error))
  process.exit(0)
})

const VERBS = { produce, transact, consume, read, admin }
await VERBS[verb]()

function messages({ count, prefix, partition, headers }) {
  return Array.from({ length: count }, (_, i) => ({
    key: `k${i % 10}`,
    value: `${prefix}${i}`,
    ...(partition === undefined ? {} : { partition }),
    ...(headers ? { headers: { trace: String(i) } } : {}),
  }))
}

async function produce() {
  const { topic, compression = 'none', acks = -1, idempotent = false } = args
  const producer = kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : undefined })
  await producer.connect()
  const types = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }
  const sent = await producer.send({
    topic,
    acks,
    compression: types[compression],
    messages: messages(args),
  })
  for (const { partition, baseOffset } of sent) say({ produced: { partition, offset: Number(baseOffset) } })
  await producer.disconnect()
  say({ done: true })
}

async function transact() {
  const { topic, transactionalId, abort, group, input } = args
  const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: messages(args) })
  if (group !== undefined) {
    const offsets = [{ topic: input, partitions: [{ partition: 0, offset: String(args.offset) }] }]
    await transaction.sendOffsets({ consumerGroupId: group, topics: offsets })
  }
  if (abort) await transaction.abort()
  else await transaction.commit()
  await producer.disconnect()
  say({ done: true })
}

async function consume() {
  const { topic, group, count, from = 'earliest', isolation = 'committed' } = args
  const consumer = kafka.consumer({
    groupId: group,
    sessionTimeout: 6_000,
    heartbeatInterval: 500,
    readUncommitted: isolation === 'uncommitted',
    maxWaitTimeInMs: 100,
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    say({ assigned: payload.memberAssignment[topic] ?? [] }),
  )
  await consumer.connect()
  cleanups.push(() => consumer.disconnect())
  await consumer.subscribe({ topic, fromBeginning: from === 'earliest' })
  let seen = 0
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: async ({ partition, message }) => {
      say({ record: recordOf(topic, partition, message) })
      if (++seen === count) say({ done: true })
    },
  })
}

function recordOf(topic, partition, { offset, key, value, headers }) {
  const pairs = Object.entries(headers ?? {}).map(([name, each]) => [name, text(each)])
  return {
    topic,
    partition,
    offset: Number(offset),
    key: text(key),
    value: text(value),
    headers: Object.fromEntries(pairs),
  }
}

async function read() {
  const { topic, partition, count } = args
  let { offset } = args
  if (args.timestamp !== undefined) {
    const client = kafka.admin()
    await client.connect()
    const offsets = await client.fetchTopicOffsetsByTimestamp(topic, args.timestamp)
    offset = Number(offsets.find((each) => each.partition === partition).offset)
    await client.disconnect()
  }
  const consumer = kafka.consumer({ groupId: `read-${process.pid}`, maxWaitTimeInMs: 100 })
  await consumer.connect()
  cleanups.push(() => consumer.disconnect())
  await consumer.subscribe({ topic, fromBeginning: true })
  let seen = 0
  await consumer.run({
    autoCommit: false,
    eachMessage: async (each) => {
      if (each.partition !== partition || Number(each.message.offset) < offset || seen >= count) return
      say({ record: recordOf(topic, partition, each.message) })
      if (++seen === count) say({ done: true })
    },
  })
  consumer.seek({ topic, partition, offset: String(offset) })
}

async function admin() {
  const { topic } = args
  const client = kafka.admin()
  await client.connect()
  const step = async (name, work) => say({ step: name, result: await work() })
  await step('create', () =>
    client.createTopics({
      topics: [{ topic, numPartitions: 3, configEntries: [{ name: 'retention.ms', value: '3600000' }] }],
    }),
  )
  await step('list', () => client.listTopics())
  await step('partitions', async () => {
    await client.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
    const { topics } = await client.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length
  })
  const retention = async () => {
    const { resources } = await client.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] }],
    })
    return resources[0].configEntries.find(({ configName }) => configName === 'retention.ms').configValue
  }
  await step('describeConfig', retention)
  await step('alterConfig', async () => {
    await client.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: topic,
          configEntries: [{ name: 'retention.ms', value: '7200000' }],
        },
      ],
    })
    return retention()
  })
  await step('offsets', async () => (await client.fetchTopicOffsets(topic)).length)
  await step('deleteRecords', async () => {
    await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '-1' }] })
    return true
  })
  await step('groups', async () => (await client.listGroups()).groups.map(({ groupId }) => groupId))
  await step('deleteTopic', async () => {
    await client.deleteTopics({ topics: [topic] })
    return !(await client.listTopics()).includes(topic)
  })
  await client.disconnect()
  say({ done: true })
}
