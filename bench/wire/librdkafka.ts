/**
 * The same by librdkafka: kcat produces the lines of a file and consumes them, in processes of its own, with librdkafka's
 * defaults (acks of all) but for the consumer's queue. What it takes from its start to its end is measured, and what that cost the broker.
 * Round trips are node-rdkafka's, in a process of its own, since it is a package of the interoperability tests.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { root } from './built.ts'
import { type Cost, holds, type Load, type Stand } from './measure.ts'

const LIMIT_MS = 60_000
/**
 * By default librdkafka 2.0 asks for nothing during a second once 100,000 messages or 64 MiB wait for the program. Of
 * small records, whether it comes to that depends on which of its two threads is ahead: runs take a third of a second or
 * one second, of whichever broker, and the faster one has more of the long ones. So both are given room for the file.
 */
const QUEUE = ['-X', 'queued.min.messages=10000000', '-X', 'queued.max.messages.kbytes=2097151']
/**
 * The first record by its number. Asked for `beginning`, librdkafka looks for the offset of each partition as soon as it has
 * been told of it, and where its own thread for the broker has not taken the partition over by then, asks again after half a
 * second: one run in ten, of whichever broker.
 */
const FIRST = ['-o', '0']
const CLIENTS = new URL('test/interop/clients/node_modules/node-rdkafka/', root)

/** Which librdkafka, or why there is none. */
export function kcatVersion(): { readonly version: string } | string {
  const { status, stdout } = spawnSync('kcat', ['-V'], { encoding: 'utf8' })
  if (status !== 0) return 'there is no kcat on this machine'
  return { version: /librdkafka ([\d.]+)/.exec(stdout)?.[1] ?? 'unknown' }
}

export interface Lines {
  readonly file: string
  readonly count: number
}

/** A file of lines to produce. */
export function linesOf(file: string, valueBytes: number, totalBytes: number): Lines {
  const count = Math.floor(totalBytes / valueBytes)
  const line = (i: number): string => `${`${i} `.padEnd(valueBytes, 'the value of a record, ')}\n`
  writeFileSync(file, Array.from({ length: count }, (_, i) => line(i)).join(''))
  return { file, count }
}

/** Bytes of values: batches are made by the client, so that only those are the same for all. */
export function kcatTurn(
  stand: Stand,
  { valueBytes, partitions }: Load,
  { file, count }: Lines,
): Promise<{ readonly produce: Cost; readonly consume: Cost }> {
  const broker = ['-q', '-b', `127.0.0.1:${stand.process.port}`]
  return stand.withTopic(partitions, async (topic) => {
    const produce = await stand.cost(async () => {
      await kcat([...broker, '-P', '-t', topic.name, '-l', file])
      return count * valueBytes
    })
    await holds(stand, topic, count)
    const consume = await stand.cost(async () => {
      const format = [...FIRST, '-c', String(count), '-f', '.']
      const seen = await kcat([...broker, '-C', '-t', topic.name, ...QUEUE, ...format])
      if (seen !== count) throw new Error(`${seen} records were consumed, and ${count} produced`)
      return count * valueBytes
    })
    return { produce, consume }
  })
}

/** How many bytes it printed. */
function kcat(args: readonly string[]): Promise<number> {
  return output('kcat', args).then(({ length }) => length)
}

function output(command: string, args: readonly string[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], timeout: LIMIT_MS })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve(Buffer.concat(chunks))
      else reject(new Error(`${command} ${args.join(' ')} ended with ${code}`))
    })
  })
}

/** Why there are no round trips of librdkafka here; undefined where there are. */
export function rdkafkaMissing(): string | undefined {
  if (existsSync(new URL('build/Release/node-librdkafka.node', CLIENTS))) return undefined
  return 'node-rdkafka is not built here (`npm run interop` does it)'
}

/** Milliseconds from producing a record until a consumer has it, one after the other, without linger. */
export function rdkafkaRoundTrips(stand: Stand, count: number): Promise<number[]> {
  const script = fileURLToPath(new URL('rdkafka-child.js', import.meta.url))
  const bootstrap = `127.0.0.1:${stand.process.port}`
  return stand.withTopic(1, async ({ name }) => {
    const text = await output(process.execPath, [
      script,
      fileURLToPath(CLIENTS),
      bootstrap,
      name,
      String(count),
    ])
    const took = JSON.parse(text.toString()) as number[]
    if (took.length !== count) throw new Error(`${took.length} of ${count} records came back`)
    return took
  })
}
