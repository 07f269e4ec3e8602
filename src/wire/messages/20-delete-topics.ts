/** DeleteTopics: topics, by name, from version 6 also by id. */
import { api } from '../api.ts'
import { array, int16, int32, string, uuid, words } from '../schema.ts'

export const deleteTopics = api({
  key: 20,
  name: 'DeleteTopics',
  versions: [1, 6],
  flexibleSince: 4,
  request: {
    topics: array({
      name: string.nullable(),
      topicId: uuid,
    }).since(6),
    topicNames: array(string).until(5),
    timeoutMs: int32,
  },
  response: {
    throttleTimeMs: int32,
    responses: array({
      name: string.nullable(6),
      topicId: uuid.since(6),
      errorCode: int16,
      errorMessage: words.nullable().since(5),
    }),
  },
})
