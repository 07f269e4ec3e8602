/**
 * ConsumerGroupDescribe: groups whose partitions the broker assigns, with what their members have and shall have. Groups
 * of this process are among them, where whole partitions go to their members; of others, also of classic ones, it says
 * GROUP_ID_NOT_FOUND, and tools ask DescribeGroups.
 *
 *   1    which protocol a member speaks
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { consumerGroupDescribe as api } from '../../wire/messages/69-consumer-group-describe.ts'
import { isGroupCoordinator } from '../groups.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { type DescribedGroup, describedModern, describedReader } from '../modern-groups.ts'
import { GROUP_OPERATIONS } from '../operations.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Group = ResponseInputOf<typeof api>['groups'][number]

const NOTHING: DescribedGroup = {
  groupState: '',
  groupEpoch: 0,
  assignmentEpoch: 0,
  assignorName: '',
  members: [],
}

export const consumerGroupDescribe: Handler = handler(api, async (request, call, world) => ({
  throttleTimeMs: 0,
  // None is told twice: an answer is as large as the group, and the question one byte.
  groups: await new Turns(world.parts.ctx).each([...new Set(request.groupIds)], (groupId): Group => {
    const group = found(groupId, call, world)
    const none = { errorCode: KAFKA_ERRORS.NONE, errorMessage: null }
    if (typeof group !== 'number') {
      const operations = request.includeAuthorizedOperations ? GROUP_OPERATIONS : undefined
      return { ...none, groupId, ...group, authorizedOperations: operations }
    }
    const isMissing = group === KAFKA_ERRORS.GROUP_ID_NOT_FOUND
    const errorMessage = isMissing ? `there is no consumer group "${groupId}"` : null
    return { ...NOTHING, errorCode: group, errorMessage, groupId, authorizedOperations: undefined }
  }),
}))

/** An error's code where there is none. */
function found(groupId: string, call: Call, world: World): DescribedGroup | number {
  if (!isGroupCoordinator(world, call, groupId)) return KAFKA_ERRORS.NOT_COORDINATOR
  const group = world.parts.groups.modern(groupId)
  if (group !== undefined) return describedModern(group, world)
  const reader = world.parts.readers.group(groupId)
  return reader?.kind === 'consumer' ? describedReader(reader, world) : KAFKA_ERRORS.GROUP_ID_NOT_FOUND
}
