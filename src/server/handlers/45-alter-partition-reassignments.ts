/**
 * AlterPartitionReassignments: moves replicas. Here a partition has one, and stays where it is: who asks for that has it,
 * anything else is refused, and there is never a move that could be called off.
 *
 *   0
 *   1    says whether the replication factor may change; it cannot
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { alterPartitionReassignments as api } from '../../wire/messages/45-alter-partition-reassignments.ts'
import { DONE, type Outcome, outcomeOf, Refusal } from '../admin-errors.ts'
import { checkReplicas } from '../assignments.ts'
import { type Handler, handler } from '../handler.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

export const alterPartitionReassignments: Handler = handler(api, async (request, _call, world) => {
  const turns = new Turns(world.parts.ctx)
  return {
    throttleTimeMs: 0,
    allowReplicationFactorChange: request.allowReplicationFactorChange,
    errorCode: KAFKA_ERRORS.NONE,
    errorMessage: null,
    responses: await turns.each(request.topics, async ({ name, partitions }) => ({
      name,
      partitions: await turns.each(partitions, ({ partitionIndex, replicas }) => {
        return { partitionIndex, ...outcomeFor(name, partitionIndex, replicas, world) }
      }),
    })),
  }
})

function outcomeFor(name: string, index: number, replicas: readonly number[] | null, world: World): Outcome {
  try {
    const partition = world.parts.topics.require(name).partitions[index]
    if (partition === undefined) {
      throw new Refusal('UNKNOWN_TOPIC_OR_PARTITION', `there is no partition ${index} of "${name}"`)
    }
    if (replicas === null) {
      throw new Refusal('NO_REASSIGNMENT_IN_PROGRESS', 'no replica is on its way to another broker')
    }
    checkReplicas([replicas], world)
    const leader = world.cluster.leaderOf(partition.topic.id, index)
    if (replicas.length === 1 && replicas[0] === leader.id) return DONE
    throw new Refusal('INVALID_REPLICA_ASSIGNMENT', `the one replica stays on broker ${leader.id}`)
  } catch (error) {
    return outcomeOf(error)
  }
}
