/** CreateTopics: topics with partitions and configs. */
import { api } from '../api.ts'
import { array, boolean, int8, int16, int32, string, uuid, words } from '../schema.ts'

export const createTopics = api({
  key: 19,
  name: 'CreateTopics',
  versions: [2, 7],
  flexibleSince: 5,
  request: {
    topics: array({
      name: string,
      numPartitions: int32,
      replicationFactor: int16,
      assignments: array({
        partitionIndex: int32,
        brokerIds: array(int32),
      }),
      configs: array({
        name: string,
        value: string.nullable(),
      }),
    }),
    timeoutMs: int32.or(60_000),
    validateOnly: boolean,
  },
  response: {
    throttleTimeMs: int32,
    topics: array({
      name: string,
      topicId: uuid.since(7),
      errorCode: int16,
      errorMessage: words.nullable(),
      topicConfigErrorCode: int16.tagged(0, 5),
      numPartitions: int32.or(-1).since(5),
      replicationFactor: int16.or(-1).since(5),
      configs: array({
        name: string,
        value: string.nullable(),
        readOnly: boolean,
        configSource: int8.or(-1),
        isSensitive: boolean,
      })
        .nullable()
        .since(5),
    }),
  },
})
