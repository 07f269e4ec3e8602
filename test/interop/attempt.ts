/**
 * A client with every feature, each trial against a server of its own. A file of tests is one client's, so that two of
 * them go at once, and trials of one client go two at a time: most of their time is waiting.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import { CLIENTS, type KafkaClient } from './clients.ts'
import type { Feature } from './feature.ts'
import { FEATURES } from './features.ts'
import type { Outcome } from './matrix.ts'
import { Trial } from './trial.ts'

/** `id` is its name in clients.ts. */
export function attemptAll(id: string): void {
  const client = CLIENTS.find((each) => each.id === id)
  if (client === undefined) throw new Error(`there is no client ${id}`)
  const outcomes = new Map<string, Outcome>()
  afterAll(() => write(id, outcomes))
  describe.concurrent(client.name, () => {
    for (const feature of FEATURES) attemptOne(client, feature, outcomes)
  })
}

function attemptOne(client: KafkaClient, feature: Feature, outcomes: Map<string, Outcome>): void {
  const { name } = feature
  const missing = client.missing() ?? feature.needs?.()
  const why = missing ?? lackOf(client, feature)
  const note = (state: Outcome['state'], reason?: string): void => {
    outcomes.set(name, {
      client: client.name,
      feature: name,
      state,
      ...(reason === undefined ? {} : { why: reason }),
    })
  }
  if (why !== undefined) {
    note(missing === undefined ? 'lacks' : 'missing', why)
    it.skip(`${name} (${why})`, () => {})
    return
  }
  // Its place in the table, whenever it ends.
  note('failed', 'it did not end')
  it(name, { timeout: 120_000 }, async () => {
    try {
      const trial = await Trial.open(client, otherThan(client), feature.server ?? {})
      await feature.run(trial).finally(() => trial.close())
      note('passed')
    } catch (error) {
      const [firstLine = ''] = String((error as Error)?.message ?? error).split('\n')
      note('failed', firstLine)
      throw error
    }
  })
}

function lackOf({ lacks }: KafkaClient, { name, group }: Feature): string | undefined {
  return Object.entries(lacks()).find(([part]) => name.includes(part) || group === part)?.[1]
}

/** A quick one, of another family. */
function otherThan({ id }: KafkaClient): KafkaClient | undefined {
  return CLIENTS.find((each) => each.id !== id && each.missing() === undefined)
}

/** For whoever puts the matrix together. */
function write(id: string, outcomes: ReadonlyMap<string, Outcome>): void {
  const folder = process.env.ODRADEK_INTEROP_OUTCOMES
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${id}.json`), JSON.stringify([...outcomes.values()]))
}
