/** Records sorted by the partition they go to: what is appended together, in the order given. */
import type { Batch } from '../model/batch.ts'
import { batchOf, type Draft } from './draft.ts'
import type { Partition } from './partition.ts'
import type { Topic } from './topic.ts'
import { type Place, tooLargeFor } from './waiting.ts'

/** All that goes to one partition. */
export interface Part extends Place {
  readonly topic: Topic
  readonly drafts: readonly Draft[]
}

interface Plan {
  readonly topic: Topic
  readonly drafts: Draft[]
  sizeBytes: number
}

export class Parts {
  readonly #plans = new Map<Partition, Plan>()

  /** Keyless records prefer a partition that has room for them beside what is planned for it. */
  add(topic: Topic, draft: Draft): void {
    const partition = topic.choose(draft, (candidate) => {
      const plan = this.#plans.get(candidate)
      return candidate.hasRoom(1 + (plan?.drafts.length ?? 0), draft.sizeBytes + (plan?.sizeBytes ?? 0))
    })
    const plan = this.#plans.get(partition)
    if (plan === undefined) {
      this.#plans.set(partition, { topic, drafts: [draft], sizeBytes: draft.sizeBytes })
      return
    }
    plan.drafts.push(draft)
    plan.sizeBytes += draft.sizeBytes
  }

  /** @throws OdradekError TOO_LARGE where a part is more than its partition retains */
  batches(): Part[] {
    return [...this.#plans].map(([partition, { topic, drafts }]) => partOf(topic, partition, drafts))
  }
}

/** @throws OdradekError TOO_LARGE */
export function partOf(topic: Topic, partition: Partition, drafts: readonly Draft[]): Part {
  const batch: Batch = batchOf(drafts)
  const part = { topic, partition, drafts, batch }
  if (partition.isTooLarge(batch)) throw tooLargeFor(part)
  return part
}
