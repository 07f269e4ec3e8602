/**
 * Idempotent producers and a group under broken connections and killed members: nothing is lost, nothing is there twice.
 * `npm run interop -- --storms 20` plays so many, each from a seed of its own; `--seed N` repeats one.
 */
import { expect, it } from 'vitest'
import { producersHere, storm } from './storm.ts'

const storms = Number(process.env.ODRADEK_STORMS ?? 1)
const first = Number(process.env.ODRADEK_STORM_SEED ?? Date.now() % 2 ** 31)
const isLong = storms > 1
const producers = producersHere()

for (let i = 0; i < storms; i++) {
  const seed = first + i
  it.skipIf(producers.length === 0)(`storm of seed ${seed}`, { timeout: 180_000 }, async () => {
    const { anomalies, broken, records } = await storm({
      seed,
      count: isLong ? 1_000 : 250,
      kills: isLong ? 3 : 1,
    })
    expect(anomalies).toEqual([])
    expect(records).toBe(producers.length * (isLong ? 1_000 : 250))
    expect(broken).toBeGreaterThan(3)
  })
}
