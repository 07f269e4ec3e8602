/**
 * What consumers say to one another through their group: subscriptions to the leader, assignments from it. A broker
 * passes them on as bytes. It looks into them for two things only: which topics a group reads, and to say of groups of
 * this process, which have no such bytes, what tools can read.
 *
 *   subscription   version │ topics │ user data │ more in later versions
 *   assignment     version │ topics with partitions │ user data
 *
 * Source: ConsumerProtocolSubscription and ConsumerProtocolAssignment of Kafka's message definitions.
 */
import { OdradekError } from '../model/errors.ts'
import { Message } from '../wire/api.ts'
import { WireReader } from '../wire/reader.ts'
import { array, bytes, int16, int32, type Struct, string } from '../wire/schema.ts'
import { WireWriter } from '../wire/writer.ts'

export const CONSUMER = 'consumer'
const VERSION = 0
/** No version of it has compact types. */
const NEVER = Number.POSITIVE_INFINITY

const SUBSCRIPTION = { version: int16, topics: array(string), userData: bytes.nullable() }
const subscription = new Message(SUBSCRIPTION, NEVER)
const assignment = new Message(
  {
    version: int16,
    topics: array({ topic: string, partitions: array(int32) }),
    userData: bytes.nullable(),
  },
  NEVER,
)

/** Every version begins alike. Null where it does not, as with clients that have a protocol of their own. */
export function subscribedTopics(metadata: Uint8Array): readonly string[] | null {
  try {
    return subscription.read(VERSION, new WireReader(metadata)).topics
  } catch (error) {
    if (error instanceof OdradekError && error.code === 'PROTOCOL_ERROR') return null
    throw error
  }
}

export function subscriptionBytes(topics: readonly string[]): Uint8Array {
  return written(subscription, { version: VERSION, topics })
}

export function assignmentBytes(
  topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[],
): Uint8Array {
  return written(assignment, { version: VERSION, topics })
}

const NOTHING = assignmentBytes([])

/** An assignment as a member can read it: where the leader gave it nothing, several clients fail on no bytes at all. */
export function readableAssignment(protocolType: string | null, assigned: Uint8Array): Uint8Array {
  return assigned.length === 0 && protocolType === CONSUMER ? NOTHING : assigned
}

function written<S extends Struct>(
  message: Message<S>,
  value: Parameters<Message<S>['write']>[2],
): Uint8Array {
  const to = new WireWriter()
  message.write(VERSION, to, value)
  const pieces = to.pieces()
  const out = new Uint8Array(to.sizeBytes)
  let at = 0
  for (const piece of pieces) {
    out.set(piece, at)
    at += piece.length
  }
  return out
}
