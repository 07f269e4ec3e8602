/**
 * DeleteTopics: topics with all that is in them, each on its own. A topic of the same name that comes later is another
 * one: its id, its offsets, its producers and the places of groups in it start anew.
 *
 *   1    by name
 *   4    flexible
 *   5    says in words what went wrong
 *   6    by name or by id
 */
import type { Topic } from '../../core/topic.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { deleteTopics as api } from '../../wire/messages/20-delete-topics.ts'
import { NO_UUID } from '../../wire/uuid.ts'
import { DONE, type Outcome, outcomeOf, refused, repeated, within } from '../admin-errors.ts'
import { type Handler, handler } from '../handler.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Result = ResponseInputOf<typeof api>['responses'][number]

interface Named {
  readonly name: string | null
  readonly topicId: string
}

export const deleteTopics: Handler = handler(api, async (request, _call, world) => {
  const named = namedIn(request)
  const twice = repeated(named.map(keyOf))
  const asked = [...new Map(named.map((each) => [keyOf(each), each])).values()]
  const found = asked.map((each) => topicOf(each, world))
  // By its name and by its id.
  const both = repeated(found)
  const pairs = asked.map((each, i) => ({ each, topic: found[i] }))
  const responses = new Turns(world.parts.ctx).each(pairs, async ({ each, topic }): Promise<Result> => {
    if (twice.has(keyOf(each))) return { ...each, ...refused('INVALID_REQUEST', 'a topic is named twice') }
    if (topic === undefined) return { ...each, ...reasonOf(each) }
    const { name, id: topicId } = topic
    if (both.has(topic)) return { name, topicId, ...refused('INVALID_REQUEST', 'a topic is named twice') }
    const work = world.parts.topics.delete(name).then(() => DONE, outcomeOf)
    return { name, topicId, ...(await within(world.parts.ctx, request.timeoutMs, work, (late) => late)) }
  })
  return { throttleTimeMs: 0, responses: await responses }
})

function namedIn({ topics, topicNames }: RequestOf<typeof api>): readonly Named[] {
  return [...topics, ...topicNames.map((name) => ({ name, topicId: NO_UUID }))]
}

function keyOf({ name, topicId }: Named): string {
  return `${topicId} ${name}`
}

function topicOf({ name, topicId }: Named, { parts: { topics } }: World): Topic | undefined {
  if (name === null) return topics.byId(topicId)
  return topicId === NO_UUID ? topics.get(name) : undefined
}

/** Why there is no topic. */
function reasonOf({ name, topicId }: Named): Outcome {
  if (name !== null && topicId !== NO_UUID) {
    return refused('INVALID_REQUEST', 'a topic is named by name or by id, not both')
  }
  if (name !== null) return refused('UNKNOWN_TOPIC_OR_PARTITION', `there is no topic "${name}"`)
  if (topicId === NO_UUID) return refused('INVALID_REQUEST', 'a topic has neither name nor id')
  return refused('UNKNOWN_TOPIC_ID', `there is no topic with the id ${topicId}`)
}
