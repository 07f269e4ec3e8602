/** Topics of the load generator on any broker: made, asked how much is in them, and gone. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createTopics, deleteTopics, listOffsets, metadata } from './built.ts'
import type { Connection } from './connection.ts'

const TIMEOUT_MS = 30_000
const LATEST = -1

export interface Topic {
  readonly name: string
  readonly partitions: number
}

let count = 0

/** A new one, once its partitions have a leader. `configs`: of this broker. */
export async function createTopic(
  connection: Connection,
  partitions: number,
  configs: Readonly<Record<string, string>>,
): Promise<Topic> {
  const name = `bench-${process.pid}-${++count}`
  const { topics } = await connection.ask(createTopics, 5, {
    topics: [
      {
        name,
        numPartitions: partitions,
        replicationFactor: 1,
        assignments: [],
        configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
      },
    ],
    timeoutMs: TIMEOUT_MS,
    validateOnly: false,
  })
  const [topic] = topics
  if (topic?.errorCode !== 0) throw new Error(`topic: ${topic?.errorCode} ${topic?.errorMessage}`)
  const made = { name, partitions }
  while (!(await isLed(connection, made))) await sleep(20)
  return made
}

/** A leader that is told may not know of it yet: it does when it answers for its partitions. */
async function isLed(connection: Connection, topic: Topic): Promise<boolean> {
  const { topics } = await connection.ask(metadata, 9, {
    topics: [{ name: topic.name }],
    allowAutoTopicCreation: false,
  })
  const led = topics[0]?.partitions.filter(({ errorCode, leaderId }) => errorCode === 0 && leaderId >= 0)
  if (led?.length !== topic.partitions) return false
  return (await askEnds(connection, topic)).every(({ errorCode }) => errorCode === 0)
}

/** Offsets at which its partitions end; with isolation 1, where stable records do. */
export async function endsOf(
  connection: Connection,
  topic: Topic,
  isolationLevel: number = 0,
): Promise<number[]> {
  return (await askEnds(connection, topic, isolationLevel)).map(({ errorCode, offset }) => {
    if (errorCode !== 0) throw new Error(`offsets of ${topic.name}: error ${errorCode}`)
    return offset
  })
}

async function askEnds(
  connection: Connection,
  { name, partitions }: Topic,
  isolationLevel: number = 0,
): Promise<readonly { readonly errorCode: number; readonly offset: number }[]> {
  const { topics } = await connection.ask(listOffsets, 6, {
    replicaId: -1,
    isolationLevel,
    topics: [
      {
        name,
        partitions: Array.from({ length: partitions }, (_, partitionIndex) => ({
          partitionIndex,
          timestamp: LATEST,
        })),
      },
    ],
  })
  return topics[0]?.partitions ?? []
}

export async function deleteTopic(connection: Connection, { name }: Topic): Promise<void> {
  const { responses } = await connection.ask(deleteTopics, 5, { topicNames: [name], timeoutMs: TIMEOUT_MS })
  if (responses[0]?.errorCode !== 0) throw new Error(`topic ${name}: ${responses[0]?.errorMessage}`)
}
