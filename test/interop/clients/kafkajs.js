/** KafkaJS, as its documentation uses it. Verbs: README.md. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')

const [bootstrap, verb, json] = process.argv.slice(2)
const args = JSON.parse(json)

function securityOf({ tls, ca, cert, key, mechanism, user, password } = {}) {
  const own = cert === undefined ? {} : { cert: readFileSync(cert), key: readFileSync(key) }
  return {
    ...(tls ? { ssl: { ca: readFileSync(ca), ...own } } : {}),
    ...(mechanism ? { sasl: { mechanism: mechanism.toLowerCase(), username: user, password } } : {}),
  }
}

const kafka = new Kafka({
  ...securityOf(args.security),
  clientId: 'interop-kafkajs',
  brokers: bootstrap.split(','),
  logLevel: logLevel.ERROR,
  logCreator: () => (entry) => console.error(JSON.stringify(entry)),
})

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
/** Microseconds of the machine's clock, the same in every process. */
const now = () => Number(process.hrtime.bigint() / 1000n)
const text = (bytes) => (bytes === null || bytes === undefined ? null : bytes.toString())
const pause = (delayMs) => new Promise((resolve) => setTimeout(resolve, delayMs))
const cleanups = []
process.on('SIGTERM', async () => {
  for (const cleanup of cleanups.reverse()) await cleanup().catch((error) => console.error(error))
  process.exit(0)
})

function messages({ count, prefix, partition, headers, sizeBytes = 0, tombstones }) {
  return Array.from({ length: count }, (_, i) => ({
    key: `k${i % 10}`,
    value: tombstones && i % 2 === 1 ? null : `${prefix}${i}`.padEnd(sizeBytes, '~'),
    ...(partition === undefined ? {} : { partition }),
    ...(headers ? { headers: { trace: String(i) } } : {}),
  }))
}

async function produce() {
  const { topic, compression = 'none', acks = -1, idempotent = false, everyMs = 0 } = args
  const producer = kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : undefined })
  await producer.connect()
  const types = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }
  const options = { topic, acks, compression: types[compression] }
  const all = messages(args)
  // One at a time where they are to take a while.
  const parts = everyMs === 0 ? [all] : all.map((message) => [message])
  for (const part of parts) {
    const sent = await producer.send({ ...options, messages: part })
    for (const { partition, baseOffset } of sent) say({ produced: { partition, offset: Number(baseOffset) } })
    await pause(everyMs)
  }
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
    sessionTimeout: args.sessionMs ?? 6_000,
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

/** Commits by itself, a few records at a time, and tells the time of everything. */
async function work() {
  // A connection that breaks while it is made rejects what nobody waits for; the consumer goes on by itself.
  process.on('unhandledRejection', (error) => console.error(error))
  let consumer
  cleanups.push(() => consumer.disconnect())
  for (;;) {
    consumer = worker()
    // From a commit of an old generation it does not go on by itself: the program begins anew.
    const ended = new Promise((resolve) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || resolve())
    })
    try {
      await workWith(consumer)
      await ended
    } catch (error) {
      // It does not try again what broke while it connected.
      console.error(error)
    }
    say({ revoked: true, at: now() })
    await consumer.disconnect().catch((error) => console.error(error))
  }
}

function worker() {
  const consumer = kafka.consumer({
    groupId: args.group,
    sessionTimeout: args.sessionMs,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100,
    maxBytesPerPartition: 500,
    retry: { retries: 20, initialRetryTime: 50, maxRetryTime: 500, restartOnFailure: async () => true },
  })
  const { CRASH, GROUP_JOIN, REBALANCING } = consumer.events
  consumer.on(CRASH, () => say({ revoked: true, at: now() }))
  consumer.on(REBALANCING, () => say({ revoked: true, at: now() }))
  consumer.on(GROUP_JOIN, ({ payload }) =>
    say({ assigned: payload.memberAssignment[args.topic] ?? [], revoked: true, at: now() }),
  )
  return consumer
}

async function workWith(consumer) {
  const { topic } = args
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, resolveOffset, isRunning, isStale, heartbeat }) => {
      const { partition } = batch
      for (const message of batch.messages) {
        if (!isRunning() || isStale()) return
        say({ record: recordOf(topic, partition, message), at: now() })
        resolveOffset(message.offset)
        await pause(2)
      }
      const offset = Number(batch.lastOffset()) + 1
      say({ committing: { partition, offset }, at: now() })
      await consumer.commitOffsets([{ topic, partition, offset: String(offset) }])
      say({ committed: { partition, offset }, at: now() })
      await heartbeat()
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
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const retention = async () => {
    const { resources } = await client.describeConfigs({
      includeSynonyms: false,
      resources: [{ ...resource, configNames: ['retention.ms'] }],
    })
    return resources[0].configEntries.find(({ configName }) => configName === 'retention.ms').configValue
  }
  const steps = {
    create: () => {
      const configEntries = [{ name: 'retention.ms', value: '3600000' }]
      return client.createTopics({ topics: [{ topic, numPartitions: 3, configEntries }] })
    },
    list: () => client.listTopics(),
    partitions: async () => {
      await client.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
      const { topics } = await client.fetchTopicMetadata({ topics: [topic] })
      return topics[0].partitions.length
    },
    describeConfig: retention,
    alterConfig: async () => {
      const configEntries = [{ name: 'retention.ms', value: '7200000' }]
      await client.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] })
      return retention()
    },
    offsets: async () => (await client.fetchTopicOffsets(topic)).map(({ high }) => Number(high)),
    deleteRecords: async () => {
      // It finds the leaders of topics that it knows already.
      await client.fetchTopicOffsets(topic)
      await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] })
    },
    groups: async () => (await client.listGroups()).groups.map(({ groupId }) => groupId),
    describeGroup: async () => {
      const { groups } = await client.describeGroups([args.group])
      return { state: groups[0].state, members: groups[0].members.length }
    },
    groupOffsets: async () => {
      const [answer] = await client.fetchOffsets({ groupId: args.group, topics: [topic] })
      return answer.partitions.map(({ offset }) => Number(offset))
    },
    alterOffsets: () => {
      return client.setOffsets({ groupId: args.group, topic, partitions: [{ partition: 0, offset: '3' }] })
    },
    deleteGroup: () => client.deleteGroups([args.group]),
    deleteTopic: () => client.deleteTopics({ topics: [topic] }),
  }
  for (const step of args.steps) say({ step, result: (await steps[step]()) ?? true })
  await client.disconnect()
  say({ done: true })
}

const VERBS = { produce, transact, consume, work, read, admin }
await VERBS[verb]()
