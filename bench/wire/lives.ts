/**
 * A life of a broker: how long it takes from the start of its process until a client is answered, what memory it takes
 * when nothing goes on, and with a thousand connections that have asked for metadata and are silent since.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { apiVersions, metadata } from './built.ts'
import { Connection } from './connection.ts'
import type { Contender } from './contenders.ts'

export const MANY = 1_000
const AT_ONCE = 50
const MiB = 1_048_576

export interface Life {
  readonly startMs: number
  readonly idleMiB: number
  readonly connectedMiB: number
}

/** `restMs`: how long it is left alone before its memory is looked at. */
export async function live(contender: Contender, restMs: number, connections: number): Promise<Life> {
  const { process, end } = await contender.start()
  const opened: Connection[] = []
  try {
    await sleep(restMs)
    const idleMiB = process.memoryBytes() / MiB
    for (let i = 0; i < connections; i += AT_ONCE) {
      const some = Array.from({ length: Math.min(AT_ONCE, connections - i) }, () => greeted(process.port))
      opened.push(...(await Promise.all(some)))
    }
    await sleep(restMs)
    return { startMs: process.startMs, idleMiB, connectedMiB: process.memoryBytes() / MiB }
  } finally {
    for (const connection of opened) connection.close()
    await end()
  }
}

async function greeted(port: number): Promise<Connection> {
  const connection = await Connection.open(port)
  await connection.ask(apiVersions, 3, { clientSoftwareName: 'bench', clientSoftwareVersion: '1' })
  const { brokers } = await connection.ask(metadata, 9, { topics: [], allowAutoTopicCreation: false })
  if (brokers.length !== 1) throw new Error(`${brokers.length} brokers`)
  return connection
}
