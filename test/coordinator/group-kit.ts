/** Members of Kafka's protocol on a broker's own groups, without the protocol. */

import type { Broker } from '../../src/broker.ts'
import type { JoinRequest, JoinResult } from '../../src/coordinator/classic-requests.ts'
import type { GroupOffsets, OffsetEntry } from '../../src/coordinator/group-offsets.ts'
import type { Topic } from '../../src/core/topic.ts'
import { protocol } from './classic-kit.ts'

export const NOBODY = { memberId: '', instanceId: null, generation: -1 }

/** A member joins a group, and leads it if it is alone. */
export async function joined(
  broker: Broker,
  name: string,
  said: Partial<JoinRequest> = {},
): Promise<JoinResult> {
  const result = await broker.parts.groups.join(name, {
    memberId: '',
    instanceId: null,
    clientId: 'client',
    clientHost: '127.0.0.1',
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 60_000,
    protocolType: 'consumer',
    protocols: [protocol('range', 'range', ['orders'])],
    requiresId: false,
    canSkipAssignment: true,
    signal: new AbortController().signal,
    ...said,
  })
  return result as JoinResult
}

/** The same, until its generation stands. */
export async function stable(
  broker: Broker,
  name: string,
  said: Partial<JoinRequest> = {},
): Promise<JoinResult> {
  const member = await joined(broker, name, said)
  await broker.parts.groups.sync(name, {
    memberId: member.memberId,
    instanceId: said.instanceId ?? null,
    generation: member.generation,
    protocolType: null,
    protocolName: null,
    assignments: new Map(),
    signal: new AbortController().signal,
  })
  return member
}

export function left(broker: Broker, name: string, { memberId }: JoinResult): void {
  void broker.parts.groups.leave(name, [{ memberId, instanceId: null }])
}

/** A commit of nobody, as administrators make it; its error if it is refused. */
export async function commit(
  broker: Broker,
  group: string,
  topic: string,
  partition: number,
  offset: number,
  note: Partial<OffsetEntry> = {},
): Promise<string> {
  const error = broker.parts.groups.checkCommit(group, NOBODY)
  if (error !== 'NONE') return error
  await broker.parts.groupOffsets.commit(group, [entry(broker, topic, partition, offset, note)])
  return error
}

export function entry(
  broker: Broker,
  topic: string,
  partition: number,
  offset: number,
  note: Partial<OffsetEntry> = {},
): OffsetEntry {
  const { id } = broker.parts.topics.get(topic) as Topic
  return { topicId: id, partition, offset, metadata: '', epoch: -1, ...note }
}

/** What a group has committed; undefined for nothing. */
export function committed(
  broker: Broker,
  group: string,
  topic: string,
  partition = 0,
): ReturnType<GroupOffsets['committed']> {
  const { id } = broker.parts.topics.get(topic) as Topic
  return broker.parts.groupOffsets.committed(group, { topicId: id, partition })
}
