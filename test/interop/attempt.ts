/**
 * A client with every feature, each trial against a server of its own. A file of tests is one client's, so that two of
 * them go at once, and trials of one client go three at a time: most of their time is waiting.
 */
import { afterAll, describe, it } from 'vitest'
import { CLIENTS, type KafkaClient } from './clients.ts'
import type { Feature } from './feature.ts'
import { FEATURES } from './features.ts'
import { Outcomes } from './outcomes.ts'
import { Trial } from './trial.ts'

/** `id` is its name in clients.ts. */
export function attemptAll(id: string): void {
  const client = CLIENTS.find((each) => each.id === id)
  if (client === undefined) throw new Error(`there is no client ${id}`)
  const outcomes = new Outcomes(id, client.name)
  afterAll(() => outcomes.write())
  describe.concurrent(client.name, () => {
    for (const feature of FEATURES) attemptOne(client, feature, outcomes)
  })
}

function attemptOne(client: KafkaClient, feature: Feature, outcomes: Outcomes): void {
  const { name } = feature
  const missing = client.missing() ?? feature.needs?.()
  const why = missing ?? lackOf(client, feature)
  if (why !== undefined) {
    outcomes.note(name, missing === undefined ? 'lacks' : 'missing', why)
    it.skip(`${name} (${why})`, () => {})
    return
  }
  // Its place in the table, whenever it ends.
  outcomes.note(name, 'failed', 'it did not end')
  it(name, { timeout: 120_000 }, () =>
    outcomes.noting(name, async () => {
      const trial = await Trial.open(client, otherThan(client), feature.server ?? {})
      await feature.run(trial).finally(() => trial.close())
    }),
  )
}

function lackOf({ lacks }: KafkaClient, { name, group }: Feature): string | undefined {
  return Object.entries(lacks()).find(([part]) => name.includes(part) || group === part)?.[1]
}

/** A quick one, of another family. */
function otherThan({ id }: KafkaClient): KafkaClient | undefined {
  return CLIENTS.find((each) => each.id !== id && each.missing() === undefined)
}
