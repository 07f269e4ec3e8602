/**
 * ListGroups: the groups that this node coordinates, those of this process among them.
 *
 *   1    throttle time
 *   3    flexible
 *   4    their states, and only those in some (KIP-518)
 *   5    their types, and only those of some (KIP-848)
 */
import { ModernGroup } from '../../coordinator/modern-group.ts'
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { listGroups as api } from '../../wire/messages/16-list-groups.ts'
import { isGroupCoordinator } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'
import { readerProtocol, readerState } from '../reader-groups.ts'
import type { World } from '../world.ts'

type Listed = Required<ResponseInputOf<typeof api>['groups'][number]>

export const listGroups: Handler = handler(api, (request, call, world) => {
  const isWanted = (filter: readonly string[], what: string): boolean =>
    filter.length === 0 || filter.some((each) => each.trim().toLowerCase() === what.toLowerCase())
  return {
    throttleTimeMs: 0,
    errorCode: KAFKA_ERRORS.NONE,
    groups: allGroups(world).filter(
      ({ groupId, groupState, groupType }) =>
        isGroupCoordinator(world, call, groupId) &&
        isWanted(request.statesFilter, groupState as string) &&
        isWanted(request.typesFilter, groupType as string),
    ),
  }
})

function allGroups({ parts }: World): Listed[] {
  const wire = [...parts.groups.all()].map((group): Listed => {
    const { name, state, protocolType } = group
    const groupType = group instanceof ModernGroup ? 'consumer' : 'classic'
    return { groupId: name, protocolType: protocolType ?? '', groupState: state, groupType }
  })
  // One that has members elsewhere too is among those.
  const readers = [...parts.readers.all()].filter(
    ({ kind, remote }) => kind !== 'broadcast' && remote === null,
  )
  return [
    ...wire,
    ...readers.map(
      (reader): Listed => ({
        groupId: reader.name,
        protocolType: readerProtocol(reader),
        groupState: readerState(reader),
        groupType: reader.kind,
      }),
    ),
  ]
}
