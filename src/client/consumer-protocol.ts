/**
 * What consumers say to one another through their group: what each wants to read, and what the leader gives to each.
 *
 *   subscription   version │ topics │ user data │ 1: owned │ 2: generation │ 3: rack
 *   assignment     version │ topics with partitions │ user data
 *
 * Every version begins alike, and readers take what follows for nothing of theirs. Source: ConsumerProtocolSubscription
 * and ConsumerProtocolAssignment of Kafka's message definitions.
 */
import { Message } from '../wire/api.ts'
import { WireReader } from '../wire/reader.ts'
import { array, bytes, int16, int32, type Struct, string } from '../wire/schema.ts'
import { WireWriter } from '../wire/writer.ts'

const NEWEST = 3
/** No version of it has compact types. */
const NEVER = Number.POSITIVE_INFINITY

export interface AssignedTopic {
  readonly topic: string
  readonly partitions: readonly number[]
}

const OWNED = { topic: string, partitions: array(int32) }
const version = new Message({ version: int16 }, NEVER)
const subscription = new Message(
  {
    version: int16,
    topics: array(string),
    userData: bytes.nullable(),
    ownedPartitions: array(OWNED).since(1),
    generationId: int32.or(-1).since(2),
    rackId: string.nullable().since(3),
  },
  NEVER,
)
const assignment = new Message({ version: int16, topics: array(OWNED), userData: bytes.nullable() }, NEVER)

/** In version 3. `owned` is what the member has now. */
export function subscriptionBytes(
  topics: readonly string[],
  owned: readonly AssignedTopic[] = [],
): Uint8Array {
  return written(subscription, { version: NEWEST, topics, ownedPartitions: owned })
}

/** Of any version. @throws OdradekError PROTOCOL_ERROR */
export function subscribedTopics(metadata: Uint8Array): readonly string[] {
  return subscription.read(versionOf(metadata), new WireReader(metadata)).topics
}

export function assignmentBytes(topics: readonly AssignedTopic[]): Uint8Array {
  return written(assignment, { version: NEWEST, topics })
}

/** Of any version; nothing where a leader has sent no bytes. @throws OdradekError PROTOCOL_ERROR */
export function assignedTopics(bytesOf: Uint8Array): readonly AssignedTopic[] {
  return bytesOf.length === 0 ? [] : assignment.read(versionOf(bytesOf), new WireReader(bytesOf)).topics
}

function versionOf(of: Uint8Array): number {
  return Math.min(version.read(0, new WireReader(of)).version, NEWEST)
}

function written<S extends Struct>(
  message: Message<S>,
  value: Parameters<Message<S>['write']>[2],
): Uint8Array {
  const to = new WireWriter()
  message.write(NEWEST, to, value)
  const out = new Uint8Array(to.sizeBytes)
  let at = 0
  for (const piece of to.pieces()) {
    out.set(piece, at)
    at += piece.length
  }
  return out
}
