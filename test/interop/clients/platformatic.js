/** @platformatic/kafka, as its documentation uses it. Verbs: README.md. */
import { readFileSync } from 'node:fs'
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const [bootstrap, verb, json] = process.argv.slice(2)
const args = JSON.parse(json)

function securityOf({ tls, ca, cert, key, mechanism, user, password } = {}) {
  const own = cert === undefined ? {} : { cert: readFileSync(cert), key: readFileSync(key) }
  return {
    ...(tls ? { tls: { ca: readFileSync(ca), ...own } } : {}),
    ...(mechanism ? { sasl: { mechanism, username: user, password } } : {}),
  }
}

const base = {
  clientId: 'interop-platformatic',
  bootstrapBrokers: bootstrap.split(','),
  ...securityOf(args.security),
}

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
const pause = (delayMs) => new Promise((resolve) => setTimeout(resolve, delayMs))
const cleanups = []
process.on('SIGTERM', async () => {
  for (const cleanup of cleanups.reverse()) await cleanup().catch((error) => console.error(error))
  process.exit(0)
})

const TOPIC_RESOURCE = 2
const SET = 0
function messages({ topic, count, prefix, partition, headers, sizeBytes = 0, tombstones }) {
  return Array.from({ length: count }, (_, i) => ({
    topic,
    key: `k${i % 10}`,
    // What is not there is null.
    ...(tombstones && i % 2 === 1 ? {} : { value: `${prefix}${i}`.padEnd(sizeBytes, '~') }),
    ...(partition === undefined ? {} : { partition }),
    ...(headers ? { headers: { trace: String(i) } } : {}),
  }))
}

async function produce() {
  const { compression = 'none', acks = -1, idempotent = false, everyMs = 0 } = args
  const producer = new Producer({
    ...base,
    serializers: stringSerializers,
    idempotent,
    autocreateTopics: true,
  })
  const all = messages(args)
  // One at a time where they are to take a while.
  const parts = everyMs === 0 ? [all] : all.map((message) => [message])
  for (const part of parts) {
    const { offsets } = await producer.send({ messages: part, acks, compression })
    for (const { partition, offset } of offsets ?? [])
      say({ produced: { partition, offset: Number(offset) } })
    await pause(everyMs)
  }
  await producer.close()
  say({ done: true })
}

async function transact() {
  const { transactionalId, abort, group, input, offset } = args
  const producer = new Producer({
    ...base,
    serializers: stringSerializers,
    idempotent: true,
    transactionalId,
  })
  const transaction = await producer.beginTransaction()
  await transaction.send({ messages: messages(args) })
  if (group !== undefined) {
    const consumer = new Consumer({ ...base, groupId: group })
    cleanups.push(() => consumer.close(true))
    const stream = await consumer.consume({ topics: [input], mode: 'earliest', autocommit: false })
    for await (const message of stream) {
      if (Number(message.offset) !== offset - 1) continue
      await transaction.addConsumer(consumer)
      await transaction.addOffset(message)
      break
    }
    await consumer.close(true)
  }
  if (abort) await transaction.abort()
  else await transaction.commit()
  await producer.close()
  say({ done: true })
}

function recordOf({ topic, partition, offset, key, value, headers }) {
  return {
    topic,
    partition,
    offset: Number(offset),
    key,
    value: value ?? null,
    headers: Object.fromEntries(headers),
  }
}

/**
 * A stream ends with the error of a commit that it cannot go on from, as where a server has forgotten its members: then the
 * program begins anew.
 */
/** Where the broker assigns, the library raises nothing: it is looked at. */
function tellAssigned(consumer) {
  let told = ''
  setInterval(() => {
    const partitions = consumer.assignments?.find(({ topic }) => topic === args.topic)?.partitions ?? []
    if (partitions.join() === told) return
    told = partitions.join()
    say({ assigned: partitions })
  }, 50).unref()
}

async function consume() {
  process.on('unhandledRejection', (error) => console.error(error))
  let consumer
  cleanups.push(() => consumer.close(true))
  const seen = { count: 0 }
  for (;;) {
    const { group: groupId, protocol: groupProtocol = 'classic' } = args
    const named = args.instance === undefined ? {} : { groupInstanceId: args.instance }
    consumer = new Consumer({
      ...base,
      ...named,
      groupId,
      groupProtocol,
      deserializers: stringDeserializers,
    })
    if (groupProtocol === 'consumer') tellAssigned(consumer)
    try {
      await consumeWith(consumer, seen)
    } catch (error) {
      console.error(error)
      say({ assigned: [] })
      await consumer.close(true).catch((failed) => console.error(failed))
      await pause(100)
    }
  }
}

async function consumeWith(consumer, seen) {
  const { topic, count, from = 'earliest', isolation = 'committed', protocol = 'classic' } = args
  // Of members that the broker assigns to, the broker says these, and the library tells what they have otherwise.
  const classic = { sessionTimeout: args.sessionMs ?? 6_000, heartbeatInterval: 500 }
  if (protocol === 'classic') {
    consumer.on('consumer:group:join', ({ assignments }) =>
      say({ assigned: assignments?.find((each) => each.topic === topic)?.partitions ?? [] }),
    )
  }
  const stream = await consumer.consume({
    topics: [topic],
    mode: 'committed',
    fallbackMode: from,
    autocommit: true,
    isolationLevel: isolation === 'committed' ? 1 : 0,
    ...(protocol === 'classic' ? classic : {}),
    maxWaitTime: 100,
  })
  for await (const message of stream) {
    say({ record: recordOf(message) })
    if (++seen.count === count) say({ done: true })
  }
}

async function read() {
  const { topic, partition, count } = args
  const consumer = new Consumer({
    ...base,
    groupId: `read-${process.pid}`,
    deserializers: stringDeserializers,
  })
  cleanups.push(() => consumer.close(true))
  let { offset } = args
  if (args.timestamp !== undefined) {
    const found = await consumer.listOffsets({ topics: [topic], timestamp: BigInt(args.timestamp) })
    offset = found.get(topic)[partition]
  }
  const stream = await consumer.consume({
    topics: [topic],
    mode: 'manual',
    offsets: [{ topic, partition, offset: BigInt(offset) }],
    autocommit: false,
    isolationLevel: 1,
    maxWaitTime: 100,
  })
  let seen = 0
  for await (const message of stream) {
    say({ record: recordOf(message) })
    if (++seen === count) break
  }
  say({ done: true })
  await consumer.close(true)
}

async function admin() {
  const { topic } = args
  const client = new Admin(base)
  const resource = { resourceType: TOPIC_RESOURCE, resourceName: topic }
  const retention = async () => {
    const [answer] = await client.describeConfigs({
      resources: [{ ...resource, configurationKeys: ['retention.ms'] }],
    })
    return answer.configs.find(({ name }) => name === 'retention.ms').value
  }
  const steps = {
    create: async () => {
      const configs = [{ name: 'retention.ms', value: '3600000' }]
      await client.createTopics({ topics: [topic], partitions: 3, replicas: 1, configs })
    },
    list: () => client.listTopics(),
    partitions: async () => {
      await client.createPartitions({ topics: [{ name: topic, count: 5, assignments: null }] })
      const { topics } = await client.metadata({ topics: [topic], forceUpdate: true })
      return topics.get(topic).partitions.length
    },
    describeConfig: retention,
    alterConfig: async () => {
      const change = { name: 'retention.ms', configOperation: SET, value: '7200000' }
      await client.incrementalAlterConfigs({ resources: [{ ...resource, configs: [change] }] })
      return retention()
    },
    offsets: async () => {
      const partitions = [{ partitionIndex: 0, timestamp: -1n }]
      const [answer] = await client.listOffsets({ topics: [{ name: topic, partitions }] })
      return answer.partitions.map(({ offset }) => Number(offset))
    },
    deleteRecords: async () => {
      await client.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 4n }] }] })
    },
    groups: async () => [...(await client.listGroups()).keys()],
    describeGroup: async () => {
      const group = (await client.describeGroups({ groups: [args.group] })).get(args.group)
      return { state: group.state, members: group.members.size }
    },
    groupOffsets: async () => {
      const [answer] = await client.listConsumerGroupOffsets({ groups: [args.group] })
      return answer.topics[0].partitions.map(({ committedOffset }) => Number(committedOffset))
    },
    alterOffsets: () => {
      const topics = [{ name: topic, partitionOffsets: [{ partition: 0, offset: 3n }] }]
      return client.alterConsumerGroupOffsets({ groupId: args.group, topics })
    },
    deleteGroup: () => client.deleteGroups({ groups: [args.group] }),
    deleteTopic: () => client.deleteTopics({ topics: [topic] }),
  }
  for (const step of args.steps) say({ step, result: (await steps[step]()) ?? true })
  await client.close()
  say({ done: true })
}

const VERBS = { produce, transact, consume, read, admin }
await VERBS[verb]()
