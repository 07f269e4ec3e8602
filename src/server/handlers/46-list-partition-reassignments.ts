/** ListPartitionReassignments: replicas that are being moved. There is one of each partition, which stays where it is. */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { listPartitionReassignments as api } from '../../wire/messages/46-list-partition-reassignments.ts'
import { type Handler, handler } from '../handler.ts'

export const listPartitionReassignments: Handler = handler(api, () => {
  return { throttleTimeMs: 0, errorCode: KAFKA_ERRORS.NONE, errorMessage: null, topics: [] }
})
