/** kcat, as a person at a terminal uses it. Verbs: README.md. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const [bootstrap, verb, json] = process.argv.slice(2)
const args = JSON.parse(json)

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
let child
process.on('SIGTERM', () => {
  if (child === undefined) process.exit(0)
  child.on('close', () => process.exit(0))
  child.kill('SIGTERM')
})

const FORMAT = '%t\t%p\t%o\t%k\t%s\t%h\n'

const VERBS = { produce, consume, read, admin }
await VERBS[verb]()

/** Resolves with standard output once kcat has ended well. */
function kcat(given, input = '', onLine = () => {}) {
  return new Promise((resolve, reject) => {
    child = spawn('kcat', ['-b', bootstrap, ...given], { stdio: ['pipe', 'pipe', 'inherit'] })
    let output = ''
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`
      onLine(line)
    })
    child.on('close', (code) => (code === 0 ? resolve(output) : reject(new Error(`kcat ended with ${code}`))))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

async function produce() {
  const { topic, count, prefix, partition, compression = 'none', acks = -1, idempotent, headers } = args
  const options = ['-P', '-t', topic, '-K', ':', '-X', 'topic.partitioner=murmur2_random']
  if (partition !== undefined) options.push('-p', String(partition))
  if (compression !== 'none') options.push('-z', compression)
  options.push('-X', `topic.request.required.acks=${acks}`)
  if (idempotent) options.push('-X', 'enable.idempotence=true')
  if (headers) {
    // Headers are of a run, so each record has one of its own.
    for (let i = 0; i < count; i++) {
      await kcat([...options, '-H', `trace=${i}`], `k${i % 10}:${prefix}${i}\n`)
    }
  } else {
    const lines = Array.from({ length: count }, (_, i) => `k${i % 10}:${prefix}${i}\n`)
    await kcat(options, lines.join(''))
  }
  say({ done: true })
}

function recordOf(line) {
  const [topic, partition, offset, key, value, headers = ''] = line.split('\t')
  const pairs = headers === '' ? [] : headers.split(',').map((each) => each.split('='))
  const place = { topic, partition: Number(partition), offset: Number(offset) }
  return { ...place, key, value, headers: Object.fromEntries(pairs) }
}

async function consume() {
  const { topic, group, count, from = 'earliest', isolation = 'committed' } = args
  const settings = {
    'auto.offset.reset': from,
    'session.timeout.ms': 6_000,
    'heartbeat.interval.ms': 500,
    'auto.commit.interval.ms': 200,
    'isolation.level': `read_${isolation}`,
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-X', `${name}=${value}`])
  const ending = count === undefined ? [] : ['-c', String(count)]
  await kcat([...options, ...ending, '-u', '-f', FORMAT, '-G', group, topic], '', (line) => {
    say({ record: recordOf(line) })
  })
  say({ done: true })
}

async function read() {
  const { topic, partition, count, offset, timestamp } = args
  const from = timestamp === undefined ? String(offset) : `s@${timestamp}`
  const place = ['-t', topic, '-p', String(partition), '-o', from, '-c', String(count)]
  await kcat(['-C', ...place, '-X', 'isolation.level=read_committed', '-u', '-f', FORMAT], '', (line) => {
    say({ record: recordOf(line) })
  })
  say({ done: true })
}

/** kcat only looks: a topic is made by asking for it. */
async function admin() {
  const { topic } = args
  await kcat(['-L', '-J', '-t', topic])
  const { topics } = JSON.parse(await kcat(['-L', '-J']))
  say({ step: 'list', result: topics.map((each) => each.topic) })
  say({ done: true })
}
