/**
 * CreatePartitions: more partitions for topics, each on its own; never fewer. Keys go to other partitions from then on.
 *
 *   0–1
 *   2    flexible
 *   3    THROTTLING_QUOTA_EXCEEDED is understood; there are no quotas here
 */
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { createPartitions as api } from '../../wire/messages/37-create-partitions.ts'
import { DONE, type Outcome, outcomeOf, Refusal, refused, repeated, within } from '../admin-errors.ts'
import { checkReplicas, counted, MAX_NEW_PARTITIONS, REPLICATION_FACTOR } from '../assignments.ts'
import { type Handler, handler } from '../handler.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Growing = RequestOf<typeof api>['topics'][number]
type Result = ResponseInputOf<typeof api>['results'][number]

export const createPartitions: Handler = handler(
  api,
  async ({ topics, timeoutMs, validateOnly }, _call, world) => {
    const twice = repeated(topics.map(({ name }) => name))
    const budget = { left: MAX_NEW_PARTITIONS }
    const single = topics.filter(({ name }) => !twice.has(name))
    const results = await new Turns(world.parts.ctx).each(single, async (topic): Promise<Result> => {
      const work = grown(topic, validateOnly, budget, world).catch((error) =>
        outcomeOf(error, 'INVALID_PARTITIONS'),
      )
      return { name: topic.name, ...(await within(world.parts.ctx, timeoutMs, work, (late) => late)) }
    })
    const repeats = [...twice].map((name) => ({
      name,
      ...refused('INVALID_REQUEST', 'a topic is named twice'),
    }))
    return { throttleTimeMs: 0, results: [...results, ...repeats] }
  },
)

async function grown(
  { name, count, assignments }: Growing,
  validateOnly: boolean,
  budget: { left: number },
  world: World,
): Promise<Outcome> {
  const { topics } = world.parts
  const partitions = topics.require(name).partitions.length
  if (count <= partitions) {
    throw new Refusal('INVALID_PARTITIONS', `"${name}" has ${partitions} partitions, so ${count} are no more`)
  }
  counted(count)
  const added = count - partitions
  if (assignments !== null) {
    if (assignments.length !== added) {
      throw new Refusal(
        'INVALID_REPLICA_ASSIGNMENT',
        `${assignments.length} partitions are assigned, and ${added} come`,
      )
    }
    checkReplicas(
      assignments.map(({ brokerIds }) => brokerIds),
      world,
      REPLICATION_FACTOR,
    )
  }
  budget.left -= added
  if (budget.left < 0) throw new Refusal('POLICY_VIOLATION', 'too many partitions for one request')
  if (!validateOnly) {
    await world.bounds.partitions.making(added, () => topics.alter(name, { partitions: count }))
  }
  return DONE
}
