/** Every client with every feature, each trial against a server of its own. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import { openBroker } from '../../src/index.ts'
import { serve } from '../../src/server/index.ts'
import { CLIENTS, type KafkaClient } from './clients.ts'
import { Driver } from './driver.ts'
import { FEATURES, type Feature } from './features.ts'
import { matrixOf, type Outcome } from './matrix.ts'

const outcomes: Outcome[] = []

afterAll(() => {
  if (process.env.ODRADEK_WRITE_MATRIX === undefined) return
  writeFileSync(join(import.meta.dirname, '../../docs/compatibility.md'), matrixOf(outcomes))
})

describe.each(CLIENTS)('$name', (client) => {
  for (const feature of FEATURES) {
    const why = client.missing ?? lackOf(client, feature)
    const outcome = { client: client.name, group: feature.group, feature: feature.name }
    if (why !== undefined) {
      outcomes.push({ ...outcome, state: client.missing === undefined ? 'lacks' : 'missing', why })
      it.skip(`${feature.name} (${why})`, () => {})
      continue
    }
    it(feature.name, { timeout: 120_000 }, async () => {
      try {
        await attempt(client, feature)
        outcomes.push({ ...outcome, state: 'passed' })
      } catch (error) {
        const [firstLine = ''] = String((error as Error)?.message ?? error).split('\n')
        outcomes.push({ ...outcome, state: 'failed', why: firstLine })
        throw error
      }
    })
  }
})

function lackOf({ lacks }: KafkaClient, { name, group }: Feature): string | undefined {
  return Object.entries(lacks).find(([part]) => name.includes(part) || group === part)?.[1]
}

async function attempt(client: KafkaClient, feature: Feature): Promise<void> {
  const drivers: Driver[] = []
  const broker = await openBroker('memory:')
  const server = await serve(broker, { port: 0 })
  try {
    await feature.run({
      broker,
      run(verb, args) {
        const driver = new Driver(client.command, server.bootstrap, verb, args)
        drivers.push(driver)
        return driver
      },
    })
  } finally {
    await Promise.all(drivers.map((driver) => driver.kill()))
    await server.close()
    await broker.close()
  }
}
