/**
 * Many records at once: sorted by partition, each partition's in one batch, all of it or nothing. A record whose id is
 * known, or comes again among them, shares the outcome of the first.
 */
import type { Published } from '../model/options.ts'
import type { Draft } from './draft.ts'
import { type Part, Parts, partOf } from './parts.ts'
import type { Topic } from './topic.ts'

/** Positions come back in the order given. @throws OdradekError TOO_LARGE where a part could never fit */
export function publishDrafts(
  topic: Topic,
  drafts: readonly Draft[],
  signal: AbortSignal | undefined,
): Promise<Published[]> {
  const outcomes = new Map<Draft, Promise<Published>>()
  const parts = new Parts()
  const ids = new Set<string>()
  const known: Draft[] = []
  const again: Draft[] = []
  for (const draft of drafts) {
    if (draft.id !== undefined && ids.has(draft.id)) again.push(draft)
    else if (topic.ids.knows(draft)) known.push(draft)
    else {
      parts.add(topic, draft)
      if (draft.id !== undefined && topic.ids.on) ids.add(draft.id)
    }
  }
  const batches = parts.batches()
  for (const draft of known) outcomes.set(draft, topic.earlier(draft) as Promise<Published>)
  for (const part of batches) {
    const published = publishPart(part, signal)
    part.drafts.forEach((draft, i) => {
      const outcome = published.then((all) => all[i] as Published)
      topic.ids.expect(draft, () => outcome)
      outcomes.set(draft, outcome)
    })
  }
  for (const draft of again) outcomes.set(draft, topic.earlier(draft) as Promise<Published>)
  return Promise.all(drafts.map((draft) => outcomes.get(draft) as Promise<Published>))
}

async function publishPart(part: Part, signal: AbortSignal | undefined): Promise<Published[]> {
  const { topic, partition } = part
  const fits = partition.line.length === 0 && partition.fits(part.batch, null)
  const published = fits ? topic.appendPart(part, null) : await topic.whenRoom(kept(part), signal, null)
  await topic.accepted(partition, published.at(-1) as Published)
  return published
}

/** A part that has to wait. */
function kept({ topic, partition, drafts }: Part): Part {
  return partOf(
    topic,
    partition,
    drafts.map((draft) => topic.keep(draft)),
  )
}
