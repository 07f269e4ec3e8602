/**
 * `npm run torture -- --slow`: thousands of clients that are connected and do nothing, or send a byte a second, and an
 * honest one beside them, against a server in a process of its own, over real sockets.
 *
 *   --connections N   of them, half idle and half slow (default 5,000)
 *
 * Passes when the honest client is answered throughout, and its slowest hundredth stays within ten times of what it was
 * alone and 100 ms. What a connection costs in memory is told.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { Connection } from '../../../src/client/connection.ts'
import { SystemClock } from '../../../src/model/clock.ts'
import { writeRequest } from '../../../src/wire/api.ts'
import { metadata } from '../../../src/wire/messages/03-metadata.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const REQUESTS = 1_000
const SECONDS = 10
const AT_ONCE = 200
const MAX_FACTOR = 10
const MAX_MS = 100

interface Server {
  readonly pid: number
  readonly port: number
  end(): void
}

/** Answers whether all is well. */
export async function tortureSlowly(connections: number): Promise<boolean> {
  const server = await started()
  const slow: Socket[] = []
  try {
    const honest = await Connection.open(
      { host: '127.0.0.1', port: server.port },
      {
        clientId: 'honest',
        clock: new SystemClock(),
        timeoutMs: 10_000,
        version: '0.0.0',
      },
    )
    await latencies(honest, REQUESTS)
    const alone = await latencies(honest, REQUESTS)
    const before = residentBytes(server.pid)
    while (slow.length < connections) {
      const more = Array.from({ length: Math.min(AT_ONCE, connections - slow.length) }, () =>
        opened(server.port),
      )
      slow.push(...(await Promise.all(more)))
    }
    const beside: number[] = []
    const frame = Buffer.concat(
      writeRequest(metadata, 12, { correlationId: 1, clientId: 'slow' }, { topics: null }),
    )
    for (let second = 0; second < SECONDS; second++) {
      // The last byte of its request is one that never comes.
      for (let i = 0; i < slow.length; i += 2) slow[i]?.write(frame.subarray(second, second + 1))
      beside.push(...(await latencies(honest, REQUESTS / SECONDS)))
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
    const each = (residentBytes(server.pid) - before) / connections
    const open = slow.filter(({ destroyed }) => !destroyed).length
    honest.close()
    const [was, is] = [atPercent(alone, 99), atPercent(beside, 99)]
    const good = is <= Math.max(MAX_MS, was * MAX_FACTOR) && open === connections
    process.stdout.write(
      `${connections} connections, half idle, half sending a byte a second; ${open} still open\n` +
        `  an honest client: median ${atPercent(alone, 50).toFixed(2)} → ${atPercent(beside, 50).toFixed(2)} ms, ` +
        `99 % ${was.toFixed(2)} → ${is.toFixed(2)} ms; ${(each / 1_024).toFixed(1)} KiB a connection\n` +
        (good ? '' : '  FAULT it was slowed down, or clients were put out\n'),
    )
    return good
  } finally {
    for (const socket of slow) socket.destroy()
    server.end()
  }
}

async function started(): Promise<Server> {
  const args = ['--import', 'tsx', join(ROOT, 'src', 'cli', 'main.ts'), 'serve', '--port', '0']
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] })
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /127\.0\.0\.1:(\d+)/.exec(line)?.[1]
    if (port !== undefined) return { pid: child.pid as number, port: Number(port), end: () => child.kill() }
  }
  throw new Error('the server did not start')
}

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', reject)
  })
}

/** Milliseconds of each, one after the other. */
async function latencies(honest: Connection, count: number): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const from = performance.now()
    await honest.request(metadata, { topics: null })
    times.push(performance.now() - from)
  }
  return times
}

function atPercent(times: readonly number[], percent: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] as number
}

/** Of a process, from what the system tells of it. */
function residentBytes(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kib) * 1_024
}
