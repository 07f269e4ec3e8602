/**
 * What consumers say to one another through their group: what each wants to read, and what the leader gives to each.
 *
 *   subscription   version │ topics │ user data │ 1: owned │ 2: generation │ 3: rack
 *   assignment     version │ topics with partitions │ user data
 *
 * Every version begins alike, and readers take what follows for nothing of theirs. Source: ConsumerProtocolSubscription
 * and ConsumerProtocolAssignment of Kafka's message definitions.
 */
import { concat } from '../log/format/bytes.ts'
import { Message } from './api.ts'
import { WireReader } from './reader.ts'
import { array, bytes, int16, int32, type Struct, string } from './schema.ts'
import { WireWriter } from './writer.ts'

/** What all versions begin with, and those that know nothing else have. */
const OLDEST = 0
const WITH_OWNED = 3
/** No version of it has compact types. */
const NEVER = Number.POSITIVE_INFINITY

export interface AssignedTopic {
  readonly topic: string
  readonly partitions: readonly number[]
}

const OWNED = { topic: string, partitions: array(int32) }
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

/** `owned`: what the member has now, for assignors that go by it. */
export function subscriptionBytes(topics: readonly string[], owned?: readonly AssignedTopic[]): Uint8Array {
  if (owned === undefined) return written(subscription, OLDEST, { version: OLDEST, topics })
  return written(subscription, WITH_OWNED, { version: WITH_OWNED, topics, ownedPartitions: owned })
}

/** Of any version. @throws OdradekError PROTOCOL_ERROR */
export function subscribedTopics(metadata: Uint8Array): readonly string[] {
  return subscription.read(OLDEST, new WireReader(metadata)).topics
}

export function assignmentBytes(topics: readonly AssignedTopic[]): Uint8Array {
  return written(assignment, OLDEST, { version: OLDEST, topics })
}

/** Of any version; nothing where a leader has sent no bytes. @throws OdradekError PROTOCOL_ERROR */
export function assignedTopics(bytesOf: Uint8Array): readonly AssignedTopic[] {
  return bytesOf.length === 0 ? [] : assignment.read(OLDEST, new WireReader(bytesOf)).topics
}

function written<S extends Struct>(
  message: Message<S>,
  version: number,
  value: Parameters<Message<S>['write']>[2],
): Uint8Array {
  const to = new WireWriter()
  message.write(version, to, value)
  return concat(to.pieces())
}
