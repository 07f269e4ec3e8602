/** librdkafka, through node-rdkafka. Verbs: README.md. */
import { createRequire } from 'node:module'
import { securityOf } from './librdkafka-security.js'

const require = createRequire(import.meta.url)
const rdkafka = require('node-rdkafka')

const [bootstrap, verb, json] = process.argv.slice(2)
const args = JSON.parse(json)

const MAX_BYTES = 10_000_000
const COMMON = {
  'metadata.broker.list': bootstrap,
  'client.id': 'interop-rdkafka',
  ...securityOf(args.security),
}

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
/** Microseconds of the machine's clock, the same in every process. */
const now = () => Number(process.hrtime.bigint() / 1000n)
const text = (bytes) => (bytes === null || bytes === undefined ? null : bytes.toString())
const pause = (delayMs) => new Promise((resolve) => setTimeout(resolve, delayMs))
const cleanups = []
process.on('SIGTERM', async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
  process.exit(0)
})

function connected(client) {
  const { ERR__AUTHENTICATION, ERR__SSL } = rdkafka.CODES.ERRORS
  return new Promise((resolve, reject) => {
    client.on('event.error', (error) => {
      console.error(error.code, error.message)
      // It would try again for ever; a program that knows that its password is wrong does not.
      if ([ERR__AUTHENTICATION, ERR__SSL].includes(error.code)) reject(error)
    })
    client.connect({ timeout: 10_000 }, (error) => (error ? reject(error) : resolve(client)))
    // A producer tells of errors when it is asked.
    const asking = setInterval(() => client.isConnected() && client.poll?.(), 100)
    client.once('ready', () => clearInterval(asking))
  })
}

function disconnected(client) {
  return new Promise((resolve) => {
    client.disconnect(() => resolve())
  })
}

/** Calls a method that takes a callback last. */
function call(client, method, ...given) {
  return new Promise((resolve, reject) => {
    client[method](...given, (error, result) => (error ? reject(error) : resolve(result)))
  })
}

async function send(producer) {
  const { topic, count, prefix, partition, headers, everyMs = 0, timed, sizeBytes = 0, tombstones } = args
  for (let i = 0; i < count; i++) {
    const pairs = headers ? [{ trace: String(i) }] : undefined
    const value = `${prefix}${i}`.padEnd(sizeBytes, '~')
    if (timed) say({ sending: value, key: `k${i % 10}`, at: now() })
    const bytes = tombstones && i % 2 === 1 ? null : Buffer.from(value)
    producer.produce(topic, partition ?? null, bytes, `k${i % 10}`, Date.now(), value, pairs)
    if (everyMs > 0) await pause(everyMs)
  }
  await call(producer, 'flush', 60_000)
}

async function produce() {
  const { compression = 'none', acks = -1, idempotent = false } = args
  const options = {
    'compression.codec': compression,
    partitioner: 'murmur2_random',
    'enable.idempotence': idempotent,
    // Its own limit is below what brokers take.
    'message.max.bytes': MAX_BYTES,
    dr_cb: true,
  }
  const producer = new rdkafka.Producer({ ...COMMON, ...options }, { 'request.required.acks': acks })
  await connected(producer)
  const failures = []
  producer.on('delivery-report', (error, { partition, offset, opaque }) => {
    if (error) failures.push(error)
    else say({ produced: { partition, offset, value: opaque }, at: now() })
  })
  producer.setPollInterval(20)
  await send(producer)
  await disconnected(producer)
  if (failures.length > 0) throw failures[0]
  say({ done: true })
}

async function transact() {
  const { transactionalId, abort, group, input, offset } = args
  const options = { partitioner: 'murmur2_random', 'transactional.id': transactionalId, dr_cb: true }
  const producer = new rdkafka.Producer({ ...COMMON, ...options })
  await connected(producer)
  producer.setPollInterval(20)
  await call(producer, 'initTransactions', 10_000)
  await call(producer, 'beginTransaction')
  await send(producer)
  if (group !== undefined) {
    const consumer = new rdkafka.KafkaConsumer({ ...COMMON, 'group.id': group }, {})
    await connected(consumer)
    await call(
      producer,
      'sendOffsetsToTransaction',
      [{ topic: input, partition: 0, offset }],
      consumer,
      10_000,
    )
    await disconnected(consumer)
  }
  await call(producer, abort ? 'abortTransaction' : 'commitTransaction', 10_000)
  await disconnected(producer)
  say({ done: true })
}

function recordOf({ topic, partition, offset, key, value, headers }) {
  const pairs = (headers ?? [])
    .flatMap((each) => Object.entries(each))
    .map(([name, each]) => [name, text(each)])
  return { topic, partition, offset, key: text(key), value: text(value), headers: Object.fromEntries(pairs) }
}

/** Of a group that assigns among itself, or is assigned by the broker, bit by bit. */
function told(consumer, { code }, partitions) {
  const assigns = code === rdkafka.CODES.ERRORS.ERR__ASSIGN_PARTITIONS
  if (args.protocol !== 'consumer' && !args.cooperative) {
    if (assigns) consumer.assign(partitions)
    else consumer.unassign()
    if (assigns) say({ assigned: partitions.map(({ partition }) => partition) })
    return
  }
  if (assigns) consumer.incrementalAssign(partitions)
  else consumer.incrementalUnassign(partitions)
  say({ assigned: consumer.assignments().map(({ partition }) => partition) })
}

async function consume() {
  const { topic, group, count, from = 'earliest', isolation = 'committed', protocol = 'classic' } = args
  const classic = { 'session.timeout.ms': args.sessionMs ?? 6_000, 'heartbeat.interval.ms': 500 }
  const consumer = new rdkafka.KafkaConsumer(
    {
      ...COMMON,
      'group.id': group,
      'group.protocol': protocol,
      // Of members that the broker assigns to, the broker says these.
      ...(protocol === 'classic' ? classic : {}),
      ...(args.instance === undefined ? {} : { 'group.instance.id': args.instance }),
      ...(args.cooperative ? { 'partition.assignment.strategy': 'cooperative-sticky' } : {}),
      'auto.commit.interval.ms': 200,
      'isolation.level': `read_${isolation}`,
      rebalance_cb: (error, partitions) => told(consumer, error, partitions),
    },
    { 'auto.offset.reset': from },
  )
  await connected(consumer)
  cleanups.push(() => disconnected(consumer))
  let seen = 0
  consumer.on('data', (message) => {
    say({ record: recordOf(message) })
    if (++seen === count) say({ done: true })
  })
  consumer.subscribe([topic])
  consumer.consume()
}

async function read() {
  const { topic, partition, count } = args
  const consumer = new rdkafka.KafkaConsumer(
    { ...COMMON, 'group.id': `read-${process.pid}`, 'enable.auto.commit': false },
    { 'auto.offset.reset': 'earliest' },
  )
  await connected(consumer)
  cleanups.push(() => disconnected(consumer))
  let { offset } = args
  if (args.timestamp !== undefined) {
    const times = [{ topic, partition, offset: args.timestamp }]
    const [found] = await call(consumer, 'offsetsForTimes', times, 10_000)
    offset = found.offset
  }
  let seen = 0
  consumer.on('data', (message) => {
    if (seen >= count) return
    say({ record: recordOf(message) })
    if (++seen === count) say({ done: true })
  })
  consumer.assign([{ topic, partition, offset }])
  consumer.consume()
}

/** node-rdkafka has topics and partitions, and no more: configs, records and groups are left as they are. */
async function admin() {
  const { topic } = args
  const client = rdkafka.AdminClient.create(COMMON)
  const producer = await connected(new rdkafka.Producer(COMMON))
  const topics = async () => (await call(producer, 'getMetadata', { timeout: 10_000 })).topics
  const steps = {
    create: () => {
      const config = { 'retention.ms': '3600000' }
      return call(client, 'createTopic', { topic, num_partitions: 3, replication_factor: 1, config })
    },
    list: async () => (await topics()).map(({ name }) => name),
    partitions: async () => {
      await call(client, 'createPartitions', topic, 5)
      return (await topics()).find(({ name }) => name === topic).partitions.length
    },
    offsets: async () => [(await call(producer, 'queryWatermarkOffsets', topic, 0, 10_000)).highOffset],
    deleteTopic: () => call(client, 'deleteTopic', topic),
  }
  for (const step of args.steps) say({ step, result: (await steps[step]()) ?? true })
  await disconnected(producer)
  client.disconnect()
  say({ done: true })
}

const VERBS = { produce, transact, consume, read, admin }
await VERBS[verb]()
