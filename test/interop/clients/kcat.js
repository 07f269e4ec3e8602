/** kcat, as a person at a terminal uses it. Verbs: README.md. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { securityOf } from './librdkafka-security.js'

const [bootstrap, verb, json] = process.argv.slice(2)
const args = JSON.parse(json)

const BY_KEY = ['-K', ':', '-X', 'topic.partitioner=murmur2_random']
const FORMAT = '%t\t%p\t%o\t%k\t%s\t%h\n'
/** How it says so, with -Z. */
const NULL = 'NULL'
/** All of them, or bit by bit: "assigned: …", "incremental assignment of 3 partition(s) (…): …". */
const ASSIGNED = /^% Group \S+ rebalanced:? .*?(assign|revo)\w*(?:: ?| of .*?\): )(.*)$/
const PARTITION = /\[(\d+)\]/g

const SECURITY = Object.entries(securityOf(args.security)).flatMap(([name, value]) => [
  '-X',
  `${name}=${value}`,
])

const pause = (delayMs) => new Promise((resolve) => setTimeout(resolve, delayMs))
const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
let child
let assigned = []
process.on('SIGTERM', () => {
  if (child === undefined || child.exitCode !== null) process.exit(0)
  child.on('close', () => process.exit(0))
  child.kill('SIGTERM')
})
// Whoever kills the driver means kcat.
process.on('exit', () => child?.kill('SIGKILL'))

/** kcat tells a person on standard error which partitions it has. */
function onSaid(line) {
  console.error(line)
  const [, what, list] = ASSIGNED.exec(line) ?? []
  if (what === undefined) return
  const partitions = [...list.matchAll(PARTITION)].map(([, partition]) => Number(partition))
  const others = assigned.filter((each) => !partitions.includes(each))
  assigned = what === 'assign' ? [...others, ...partitions] : others
  say({ assigned })
}

/** Resolves with standard output once kcat has ended well. */
function kcat(given, { input = '', onStart = ({ stdin }) => stdin.end(input), onLine } = {}) {
  return new Promise((resolve, reject) => {
    const started = spawn('kcat', ['-b', bootstrap, ...SECURITY, ...given], {
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child = started
    say({ pid: started.pid })
    let output = ''
    createInterface({ input: started.stdout }).on('line', (line) => {
      if (onLine === undefined) output += `${line}\n`
      else onLine(line)
    })
    createInterface({ input: started.stderr }).on('line', onSaid)
    started.on('close', (ended) => {
      if (ended === 0) resolve(output)
      else reject(new Error(`kcat ended with ${ended}`))
    })
    started.stdin.on('error', () => {})
    onStart(started)
  })
}

/** kcat reads 1,024 bytes at a time, or waits: a line that is to leave it at once is as long. Readers take the padding away. */
const CHUNK = 1_024

function lines({ count, prefix, everyMs = 0, sizeBytes = 0, tombstones }, isAtOnce = everyMs > 0) {
  return Array.from({ length: count }, (_, i) => {
    const key = `k${i % 10}:`
    if (tombstones && i % 2 === 1) return `${key}\n`
    return `${key}${`${prefix}${i}`.padEnd(isAtOnce ? CHUNK - 1 - key.length : sizeBytes, '~')}\n`
  })
}

async function produce() {
  const { topic, partition, compression = 'none', acks = -1, idempotent, headers, everyMs = 0 } = args
  const options = ['-P', '-t', topic, ...BY_KEY]
  // What is empty is null.
  if (args.tombstones) options.push('-Z')
  if (partition !== undefined) options.push('-p', String(partition))
  if (compression !== 'none') options.push('-z', compression)
  options.push('-X', `topic.request.required.acks=${acks}`)
  // It ends when no broker is there, unless it is told that one will come back.
  if (everyMs > 0) options.push('-E')
  // Its own limit is below what brokers take.
  options.push('-X', 'message.max.bytes=10000000')
  if (idempotent) options.push('-X', 'enable.idempotence=true')
  if (headers) {
    // Headers are of a run, so each record has one of its own.
    for (const [i, input] of lines(args).entries()) await kcat([...options, '-H', `trace=${i}`], { input })
  } else {
    await kcat(options, {
      async onStart({ stdin }) {
        for (const line of lines(args)) {
          stdin.write(line)
          if (everyMs > 0) await pause(everyMs)
        }
        stdin.end()
      },
    })
  }
  say({ done: true })
}

/** Of the log, with what is not committed. */
async function end(topic) {
  const [place] = await query(topic, '-X', 'isolation.level=read_uncommitted')
  return place
}

async function query(topic, ...options) {
  const output = await kcat(['-Q', '-t', `${topic}:0:-1`, ...options])
  return output
    .trim()
    .split('\n')
    .map((line) => Number(line.split(' ').at(-1)))
}

/**
 * All of standard input is one transaction; ended by a signal, it is aborted: after some of it is in the log, as another
 * kcat sees, and before its input ends.
 */
async function transact() {
  const { topic, transactionalId, abort } = args
  const options = ['-P', '-t', topic, ...BY_KEY, '-X', `transactional.id=${transactionalId}`]
  if (abort) {
    const before = await end(topic)
    await kcat(options, {
      async onStart(producer) {
        producer.stdin.write(lines(args, true).join(''))
        while ((await end(topic)) === before) await pause(50)
        producer.kill('SIGTERM')
        await pause(100)
        producer.stdin.end()
      },
    })
  } else await kcat(options, { input: lines(args).join('') })
  say({ done: true })
}

function recordOf(line) {
  const [topic, partition, offset, key, value, headers = ''] = line.split('\t')
  const pairs = headers === '' ? [] : headers.split(',').map((each) => each.split('='))
  const place = { topic, partition: Number(partition), offset: Number(offset) }
  const said = { key: key === NULL ? null : key, value: value === NULL ? null : value.replace(/~+$/, '') }
  return { ...place, ...said, headers: Object.fromEntries(pairs) }
}

async function consume() {
  const { topic, group, count, from = 'earliest', isolation = 'committed', sessionMs = 6_000 } = args
  const settings = {
    'auto.offset.reset': from,
    'session.timeout.ms': sessionMs,
    'heartbeat.interval.ms': 500,
    'auto.commit.interval.ms': 200,
    'isolation.level': `read_${isolation}`,
    'fetch.wait.max.ms': 100,
    ...(args.instance === undefined ? {} : { 'group.instance.id': args.instance }),
    ...(args.cooperative ? { 'partition.assignment.strategy': 'cooperative-sticky' } : {}),
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-X', `${name}=${value}`])
  const ending = count === undefined ? ['-E'] : ['-c', String(count)]
  await kcat([...options, ...ending, '-Z', '-u', '-f', FORMAT, '-G', group, topic], {
    onLine: (line) => say({ record: recordOf(line) }),
  })
  say({ done: true })
}

async function read() {
  const { topic, partition, count, offset, timestamp } = args
  const from = timestamp === undefined ? String(offset) : `s@${timestamp}`
  const place = ['-t', topic, '-p', String(partition), '-o', from, '-c', String(count)]
  await kcat(['-C', '-Z', ...place, '-X', 'isolation.level=read_committed', '-u', '-f', FORMAT], {
    onLine: (line) => say({ record: recordOf(line) }),
  })
  say({ done: true })
}

/** kcat only looks. */
async function admin() {
  const { topic } = args
  const steps = {
    list: async () => JSON.parse(await kcat(['-L', '-J'])).topics.map((each) => each.topic),
    offsets: () => query(topic),
  }
  for (const step of args.steps) say({ step, result: await steps[step]() })
  say({ done: true })
}

const VERBS = { produce, transact, consume, read, admin }
await VERBS[verb]()
