/**
 * What a broker has to do with the consumer protocol (wire/consumer-protocol.ts), which it passes on as bytes: it looks
 * which topics a group reads, and sees to it that a member can read what it was given.
 */
import { OdradekError } from '../model/errors.ts'
import { assignmentBytes, subscribedTopics } from '../wire/consumer-protocol.ts'

export const CONSUMER = 'consumer'

/** Null where it is none that can be read, as with clients that have a protocol of their own. */
export function topicsOf(metadata: Uint8Array): readonly string[] | null {
  try {
    return subscribedTopics(metadata)
  } catch (error) {
    if (error instanceof OdradekError && error.code === 'PROTOCOL_ERROR') return null
    throw error
  }
}

/** An assignment as a member can read it: where the leader gave it nothing, several clients fail on no bytes at all. */
export function readableAssignment(protocolType: string | null, assigned: Uint8Array): Uint8Array {
  return assigned.length === 0 && protocolType === CONSUMER ? assignmentBytes([]) : assigned
}
