/**
 * The server of the soak test, in a process of its own: `server <data directory, or nothing>`. Says its port, and answers
 * whoever asks what it holds, after a collection. Ends when its parent does.
 */
import { openBroker } from 'odradek'
import { serve } from 'odradek/server'

export interface Holding {
  readonly heapBytes: number
  /** Memory of buffers: logs above all. */
  readonly bufferBytes: number
  readonly residentBytes: number
  readonly timers: number
  /** What keeps the process at work besides timers: sockets, files. */
  readonly handles: number
  readonly connections: number
  /** Errors that were logged. */
  readonly errors: number
}

let errors = 0
const logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (details: object, message: string) => {
    if (errors++ < 10) console.error(message, details)
  },
}
const [directory] = process.argv.slice(2)
const broker =
  directory === undefined
    ? await openBroker('memory:', { logger })
    : await openBroker(`file:${directory}`, { durability: 'os', logger })
const server = await serve(broker, { port: 0 })

process.on('message', () => {
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  const resources = process.getActiveResourcesInfo()
  const timers = resources.filter((name) => name === 'Timeout' || name === 'Immediate').length
  const holding: Holding = {
    heapBytes: heapUsed,
    bufferBytes: external,
    residentBytes: rss,
    timers,
    handles: resources.length - timers,
    connections: server.connections,
    errors,
  }
  process.send?.(holding)
})
process.on('disconnect', () => process.exit(0))
process.send?.(server.addresses[0]?.port)
