/**
 * DescribeGroups: groups with their members, what those subscribe to, and what they were assigned. Groups of this
 * process and modern groups are shown too, in the same words; what they are for certain, ConsumerGroupDescribe says.
 *
 *   1    throttle time
 *   3    authorized operations
 *   4    static members
 *   5    flexible
 *   6    GROUP_ID_NOT_FOUND for a group that is not there (KIP-1043); before, it is in state Dead
 */
import type { ClassicGroup } from '../../coordinator/classic-group.ts'
import type { ModernGroup } from '../../coordinator/modern-group.ts'
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { describeGroups as api } from '../../wire/messages/15-describe-groups.ts'
import { readableAssignment } from '../consumer-protocol.ts'
import { isGroupCoordinator } from '../groups.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { asClassicMember } from '../modern-groups.ts'
import { GROUP_OPERATIONS } from '../operations.ts'
import { readerMembers, readerProtocol, readerState } from '../reader-groups.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Group = ResponseInputOf<typeof api>['groups'][number]
type Described = Omit<Group, 'groupId' | 'authorizedOperations'>

const SINCE_NOT_FOUND = 6
const NO_BYTES = new Uint8Array(0)

export const describeGroups: Handler = handler(api, async (request, call, world) => ({
  throttleTimeMs: 0,
  // None is told twice: an answer is as large as the group, and the question one byte.
  groups: await new Turns(world.parts.ctx).each([...new Set(request.groups)], (groupId): Group => {
    const group = described(groupId, call, world)
    const tells = request.includeAuthorizedOperations && group.errorCode === KAFKA_ERRORS.NONE
    return { groupId, ...group, authorizedOperations: tells ? GROUP_OPERATIONS : undefined }
  }),
}))

function described(groupId: string, call: Call, world: World): Described {
  if (!isGroupCoordinator(world, call, groupId)) return nothing(KAFKA_ERRORS.NOT_COORDINATOR, '')
  const classic = world.parts.groups.get(groupId)
  if (classic !== undefined) return describedClassic(classic)
  const modern = world.parts.groups.modern(groupId)
  if (modern !== undefined) return describedAsClassic(modern, world)
  const reader = world.parts.readers.group(groupId)
  if (reader !== undefined) {
    return {
      errorCode: KAFKA_ERRORS.NONE,
      groupState: readerState(reader),
      protocolType: readerProtocol(reader),
      protocolData: reader.settings.assignment,
      members: readerMembers(reader),
    }
  }
  if (call.version < SINCE_NOT_FOUND) return nothing(KAFKA_ERRORS.NONE, 'Dead')
  return {
    ...nothing(KAFKA_ERRORS.GROUP_ID_NOT_FOUND, 'Dead'),
    errorMessage: `there is no group "${groupId}"`,
  }
}

function describedAsClassic(group: ModernGroup, world: World): Described {
  const { state, protocolType, assignor, members } = group
  return {
    errorCode: KAFKA_ERRORS.NONE,
    groupState: state,
    protocolType,
    protocolData: members.size === 0 ? '' : assignor,
    members: [...members].map((member) => asClassicMember(member, world)),
  }
}

/** What they subscribe to and are assigned is known once the generation stands. */
function describedClassic(group: ClassicGroup): Described {
  const { protocolType, protocolName } = group
  const isStable = group.state === 'Stable'
  return {
    errorCode: KAFKA_ERRORS.NONE,
    groupState: group.state,
    protocolType: protocolType ?? '',
    protocolData: isStable ? (protocolName ?? '') : '',
    members: [...group.members].map((member) => ({
      memberId: member.id,
      groupInstanceId: member.instanceId,
      clientId: member.clientId,
      clientHost: `/${member.clientHost}`,
      memberMetadata: isStable ? member.metadataFor(protocolName) : NO_BYTES,
      memberAssignment: isStable ? readableAssignment(protocolType, member.assignment) : NO_BYTES,
    })),
  }
}

function nothing(errorCode: number, groupState: string): Described {
  return { errorCode, groupState, protocolType: '', protocolData: '', members: [] }
}
