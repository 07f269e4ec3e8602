/** FindCoordinator: who coordinates a group (key type 0), a transactional id (1) or a share group (2); several from version 4. */
import { api } from '../api.ts'
import { array, int8, int16, int32, string, words } from '../schema.ts'

export const findCoordinator = api({
  key: 10,
  name: 'FindCoordinator',
  versions: [0, 6],
  flexibleSince: 3,
  request: {
    key: string.until(3),
    keyType: int8.since(1),
    coordinatorKeys: array(string).since(4),
  },
  response: {
    throttleTimeMs: int32.since(1),
    errorCode: int16.until(3),
    errorMessage: words.nullable().since(1).until(3),
    nodeId: int32.until(3),
    host: string.until(3),
    port: int32.until(3),
    coordinators: array({
      key: string,
      nodeId: int32,
      host: string,
      port: int32,
      errorCode: int16,
      errorMessage: words.nullable(),
    }).since(4),
  },
})
