/**
 * The server of a storm, in a process of its own, so that it can be killed: a broker in a directory, with a listener for each
 * passage to it. It tells how far logs and group are.
 *
 *   storm-server <json: directory, listeners: [{port, advertised}], topic, group, partitions}>  ─►  {"ready"}, {"ends", "committed"}
 */
import { openBroker } from '../../src/index.ts'
import { serve } from '../../src/server/index.ts'

interface Given {
  readonly directory: string
  /** Where it listens, and where clients are told to connect. */
  readonly listeners: readonly { readonly port: number; readonly advertised: number }[]
  readonly topic: string
  readonly group: string
  readonly partitions: number
}

const LOOK_MS = 50
const { directory, listeners, topic, group, partitions } = JSON.parse(process.argv[2] ?? '') as Given

const broker = await openBroker(`file:${directory}`)
if (!broker.listTopics().includes(topic)) await broker.createTopic(topic, { partitions })
const server = await serve(broker, {
  listeners: listeners.map(({ port, advertised }, i) => ({
    name: `PASSAGE_${i}`,
    port,
    advertised: { host: '127.0.0.1', port: advertised },
  })),
})
broker.parts.groups.configure({ minSessionTimeoutMs: 1_000 })
say({ ready: true, ports: server.addresses.map(({ port }) => port) })

let told = ''
setInterval(() => {
  const ends = broker.describe(topic).partitions.reduce((sum, { high }) => sum + high, 0)
  const now = JSON.stringify({ ends, committed: committed() })
  if (now !== told) process.stdout.write(`${now}\n`)
  told = now
}, LOOK_MS)

process.once('SIGTERM', async () => {
  await server.close({ drainMs: 0 })
  await broker.close()
  process.exit(0)
})

function say(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

/** Before anybody was in the group there is none. */
function committed(): number {
  try {
    return broker.describeGroup(group).cursors.reduce((sum, each) => sum + each.committed, 0)
  } catch {
    return 0
  }
}
