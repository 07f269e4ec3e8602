/**
 * FindCoordinator: which node coordinates a group (0), a transactional id (1) or a share group's state (2, from 6 on),
 * at the address of the listener that was asked. Every key has a coordinator, whether there is anything of that name or
 * not.
 *
 *   1    transactional ids; an error message
 *   3    flexible
 *   4    several keys
 *   6    share groups
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { findCoordinator as api } from '../../wire/messages/10-find-coordinator.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import type { World } from '../world.ts'

const SINCE_SEVERAL = 4
const SINCE_SHARE = 6
const KINDS = ['group', 'transaction', 'share'] as const

interface Found {
  readonly errorCode: number
  readonly errorMessage: string | null
  readonly nodeId: number
  readonly host: string
  readonly port: number
}

export const findCoordinator: Handler = handler(api, (request, call, world) => {
  const { key, keyType, coordinatorKeys } = request
  if (call.version < SINCE_SEVERAL) return { throttleTimeMs: 0, ...found(key, keyType, call, world) }
  return {
    throttleTimeMs: 0,
    coordinators: coordinatorKeys.map((each) => ({ key: each, ...found(each, keyType, call, world) })),
  }
})

function found(key: string, keyType: number, { version, listener }: Call, { cluster }: World): Found {
  const kind = KINDS[keyType]
  if (kind === undefined || (kind === 'share' && version < SINCE_SHARE)) {
    return nowhere(KAFKA_ERRORS.INVALID_REQUEST, `${keyType} is no type of key in version ${version}`)
  }
  const { id, advertised } = cluster.coordinatorOf(kind, key)
  const address = advertised.get(listener)
  if (address === undefined) {
    return nowhere(KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE, `node ${id} has no listener "${listener}"`)
  }
  return { errorCode: KAFKA_ERRORS.NONE, errorMessage: null, nodeId: id, ...address }
}

function nowhere(errorCode: number, errorMessage: string): Found {
  return { errorCode, errorMessage, nodeId: -1, host: '', port: -1 }
}
