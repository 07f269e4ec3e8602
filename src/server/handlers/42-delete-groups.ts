/**
 * DeleteGroups: groups without members, of either side, with all they have committed.
 *
 *   2    flexible
 */
import { OdradekError } from '../../model/errors.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { deleteGroups as api } from '../../wire/messages/42-delete-groups.ts'
import { isGroupCoordinator, storedErrorCode } from '../groups.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

export const deleteGroups: Handler = handler(api, async (request, call, world) => ({
  throttleTimeMs: 0,
  results: await new Turns(world.parts.ctx).each(request.groupsNames, async (groupId) => ({
    groupId,
    errorCode: await deleted(groupId, call, world),
  })),
}))

async function deleted(groupId: string, call: Call, world: World): Promise<number> {
  if (!isGroupCoordinator(world, call, groupId)) return KAFKA_ERRORS.NOT_COORDINATOR
  try {
    await world.parts.groups.delete(groupId)
    return KAFKA_ERRORS.NONE
  } catch (error) {
    const code = error instanceof OdradekError ? error.code : undefined
    if (code === 'UNKNOWN_CONSUMER') return KAFKA_ERRORS.GROUP_ID_NOT_FOUND
    return code === 'GROUP_NOT_EMPTY' ? KAFKA_ERRORS.NON_EMPTY_GROUP : storedErrorCode(error)
  }
}
