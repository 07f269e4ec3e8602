/** Members of a consumer group join, leave and hang at random: one owner, fenced strangers, everything done in the end. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { World } from '../support/world.ts'

const PARTITIONS = 6
const SEED = 20261130

type Step =
  | { readonly do: 'join'; readonly hangs: boolean }
  | { readonly do: 'leave'; readonly which: number; readonly drains: boolean }
  | { readonly do: 'publish'; readonly count: number }
  | { readonly do: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('join' as const), hangs: fc.boolean() }),
  fc.record({ do: fc.constant('leave' as const), which: fc.nat(9), drains: fc.boolean() }),
  fc.record({ do: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 150 }) }),
)

it(`a storm of rebalances keeps one owner per partition and loses nothing (seed ${SEED})`, async () => {
  const storm = fc.asyncProperty(
    fc.constantFrom('range' as const, 'round-robin' as const, 'sticky' as const),
    fc.array(step, { minLength: 5, maxLength: 60 }),
    async (assignment, steps) => {
      const world = new World()
      const topic = await world.broker.createTopic<number>('t', { partitions: PARTITIONS })
      const acked = new Map<number, number[]>()
      const inHand = new Map<number, Delivery<number>>()
      const members: Subscription[] = []
      let published = 0
      let made = 0

      const take = (id: string, hangs: boolean) => (d: Delivery<number>) => {
        const held = inHand.get(d.partition)
        // One owner: whatever was in hand before is fenced by now.
        expect(held === undefined || !held.ack(), `${id} got ${d.partition}/${d.offset} beside another`).toBe(
          true,
        )
        if (hangs) {
          inHand.set(d.partition, d)
          return
        }
        inHand.delete(d.partition)
        const done = acked.get(d.partition) ?? []
        acked.set(d.partition, [...done, d.offset])
        expect(d.ack()).toBe(true)
      }
      const join = async (hangs: boolean): Promise<void> => {
        const id = `m${made++}`
        members.push(
          await topic.subscribe(take(id, hangs), {
            id,
            group: 'g',
            assignment,
            ack: 'manual',
            ackTimeoutMs: 100,
            concurrency: PARTITIONS,
            retry: { attempts: 1_000 },
          }),
        )
      }

      await join(false)
      for (const each of steps) {
        if (each.do === 'join') await join(each.hangs)
        else if (each.do === 'publish') {
          for (let i = 0; i < each.count; i++)
            await topic.publish(published, { partition: published++ % PARTITIONS })
        } else if (each.do === 'wait') await world.clock.advance(each.ms)
        else if (members.length > 0) {
          const [gone] = members.splice(each.which % members.length, 1)
          const left = gone?.close({ drainMs: each.drains ? 50 : 0 })
          await world.clock.advance(50)
          await left
        }
        const owners = world.broker.describeGroup('g').cursors.map(({ owner }) => owner)
        const ids = new Set(members.map(({ id }) => id))
        expect(owners.every((owner) => owner === null || ids.has(owner))).toBe(true)
      }
      // Calm: only members that work. Then it converges.
      for (const member of members.splice(0)) await member.close({ drainMs: 0 })
      for (let i = 0; i < 3; i++) await join(false)
      await world.clock.advance(1_000)
      const owners = world.broker.describeGroup('g').cursors.map(({ owner }) => owner)
      expect(owners).not.toContain(null)
      for (let p = 0; p < PARTITIONS; p++) {
        const { end } = world.broker.describe('t').partitions[p] as { end: number }
        expect(acked.get(p) ?? []).toEqual(Array.from({ length: end }, (_, i) => i))
      }
      await world.broker.close()
      expect(world.clock.pending).toBe(0)
    },
  )
  await fc.assert(storm, { seed: SEED, numRuns: 60 })
}, 120_000)
