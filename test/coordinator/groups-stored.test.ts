/** What is stored of groups: as much as is needed to go on, once for each change, and nothing of what is gone. */
import { describe, expect, it } from 'vitest'
import { GroupStore, type StoredGroup } from '../../src/coordinator/group-store.ts'
import type { Engine, MetaChange } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { plainDisk } from '../support/disks.ts'
import { changedEngine } from '../support/engines.ts'
import { GroupClient } from '../support/group-client.ts'
import { KafkaWorld } from '../support/kafka.ts'
import { ModernClient } from '../support/modern-client.ts'
import { watch } from '../support/world.ts'
import { formed, rebalance } from './restart-kit.ts'

const DAY_MS = 86_400_000

/** A broker on an engine that tells all that is put, of groups. */
async function watched({ durable = true, partitions = 6 } = {}) {
  const engine: Engine = durable
    ? await plainDisk().open(new ManualClock())
    : memoryEngine({ clock: new ManualClock() })
  const puts: MetaChange[] = []
  const meta: Engine['meta'] = {
    get: (key) => engine.meta.get(key),
    scan: (prefix) => engine.meta.scan(prefix),
    put: (changes) => {
      puts.push(...changes.filter(([key]) => key.startsWith('group')))
      return engine.meta.put(changes)
    },
  }
  const world = new KafkaWorld({
    engine: changedEngine(engine, { meta }),
    broker: { offsetRetentionMs: DAY_MS },
  })
  await world.broker.createTopic('orders', { partitions })
  const stored = (): string[] => [...meta.scan('group')].map(([key]) => key)
  return { world, puts, stored }
}

const sizeOf = (puts: readonly MetaChange[]): number => JSON.stringify(puts).length

describe('of a classic group', () => {
  it('each member is stored when its generation stands, and when it has changed since', async () => {
    const { world, puts } = await watched()
    const clients = [new GroupClient(world), new GroupClient(world), new GroupClient(world)]
    await formed(clients)
    const members = clients.map(({ memberId }) => `group-member/g/${memberId}`)
    expect(new Set(puts.map(([key]) => key))).toEqual(new Set(['group/g', ...members]))
    puts.length = 0
    for (let i = 0; i < 10; i++) for (const client of clients) await client.heartbeat()
    expect(puts).toEqual([])
    // The same again for all.
    await rebalance(clients)
    expect(puts.map(([key]) => key)).toEqual(['group/g', 'group/g'])
    // Another one for the last.
    await rebalance(clients, 7)
    expect(puts.map(([key]) => key)).toContain(members[0])
  })

  it('nothing is stored of a join, but the generation', async () => {
    const { world, puts } = await watched()
    await new GroupClient(world).joinAll()
    expect(puts.map(([key]) => key)).toEqual(['group/g'])
  })

  it('a member that leaves, dies or makes room for itself leaves nothing', async () => {
    const { world, stored } = await watched()
    const clients = [new GroupClient(world), new GroupClient(world, { instanceId: 'a' })]
    await formed(clients)
    await new GroupClient(world, { instanceId: 'a' }).join()
    expect(stored()).toHaveLength(3)
    await clients[0]?.leave()
    expect(stored()).toHaveLength(2)
    await world.clock.advance(120_000)
    expect(stored()).toEqual(['group/g'])
  })
})

describe('of a modern group', () => {
  it('a member is stored when it changes, not when it is heard of, and nobody else with it', async () => {
    const { world, puts } = await watched()
    const [a, b] = [new ModernClient(world), new ModernClient(world)]
    await a.beat()
    expect(puts.map(([key]) => key)).toEqual(['group/g', `group-member/g/${a.memberId}`])
    puts.length = 0
    for (let i = 0; i < 10; i++) await a.beat()
    expect(puts).toEqual([])
    await b.beat()
    expect(puts.map(([key]) => key)).toEqual(['group/g', `group-member/g/${b.memberId}`])
    puts.length = 0
    await a.beat()
    expect(puts.map(([key]) => key)).toEqual([`group-member/g/${a.memberId}`])
    puts.length = 0
    await a.beat({ rackId: 'there' })
    await a.beat({ rackId: 'there' })
    expect(puts.map(([key]) => key)).toEqual([`group-member/g/${a.memberId}`])
  })

  it('200 members that join write in proportion to their number', async () => {
    const { world, puts } = await watched({ partitions: 200 })
    const sizes = [0, 0]
    for (let i = 0; i < 200; i++) {
      await new ModernClient(world).beat()
      if (i === 99) sizes[0] = sizeOf(puts)
    }
    sizes[1] = sizeOf(puts) - (sizes[0] as number)
    expect(sizes[1]).toBeLessThan(1.3 * (sizes[0] as number))
    expect(sizeOf(puts)).toBeLessThan(200 * 1_000)
  })

  it('a member that leaves, dies or comes back under another id leaves nothing', async () => {
    const { world, stored } = await watched()
    const [a, b] = [new ModernClient(world), new ModernClient(world)]
    await a.beat()
    await b.beat({ instanceId: 'a' })
    await b.beat({ memberEpoch: -2, instanceId: 'a' })
    await new ModernClient(world).beat({ instanceId: 'a' })
    expect(stored()).toHaveLength(3)
    await a.beat({ memberEpoch: -1 })
    expect(stored()).toHaveLength(2)
    await world.clock.advance(60_000)
    expect(stored()).toEqual(['group/g'])
  })
})

it.each(['deleted', 'forgotten'])('a group that is %s leaves nothing', async (how) => {
  const { world, stored } = await watched()
  const classic = new GroupClient(world, { group: 'a/b' })
  await rebalance([classic])
  const modern = new ModernClient(world, { group: 'a%2fb' })
  await modern.beat()
  expect(stored()).toHaveLength(4)
  await classic.leave()
  await modern.beat({ memberEpoch: -1 })
  if (how === 'forgotten') await world.clock.advance(2 * DAY_MS)
  else for (const name of world.broker.listGroups()) await world.broker.deleteGroup(name)
  expect(stored()).toEqual([])
})

it('an engine that forgets with the process is asked to store nothing', async () => {
  const { world, puts } = await watched({ durable: false })
  await rebalance([new GroupClient(world)])
  await new ModernClient(world, { group: 'modern' }).beat()
  expect(puts).toEqual([])
})

describe('the store', () => {
  const GROUP: StoredGroup = { generation: 1, protocolType: null, emptySince: null }

  function failing() {
    const engine = memoryEngine({ clock: new ManualClock() })
    const outcomes: ((failure?: Error) => void)[] = []
    const put = (changes: readonly MetaChange[]): Promise<void> =>
      new Promise((resolve, reject) => {
        outcomes.push((failure) => {
          if (failure !== undefined) reject(failure)
          else resolve(engine.meta.put(changes))
        })
      })
    const { get, scan } = engine.meta
    const meta = { get: get.bind(engine.meta), scan: scan.bind(engine.meta), put }
    const raised: string[] = []
    const store = new GroupStore(changedEngine(engine, { meta, durable: true }), (_, name) =>
      raised.push(name),
    )
    return { store, outcomes, raised, generation: () => (meta.get('group/g') as StoredGroup).generation }
  }

  const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

  it('has all saved when the last of what was put is stored', async () => {
    const { store, outcomes } = failing()
    expect(store.saved('g')).toBeUndefined()
    store.put('g', GROUP)
    store.drop('g', 'a')
    const saved = watch(store.saved('g') as Promise<unknown>)
    outcomes[1]?.()
    await settled()
    expect(saved.state).toBe('waiting')
    outcomes[0]?.()
    await settled()
    expect(saved.state).toBe('resolved')
    expect(store.saved('g')).toBeUndefined()
  })

  it('puts again what failed, the newest of it, and raises it once', async () => {
    const { store, outcomes, raised, generation } = failing()
    store.put('g', GROUP)
    store.put('g', { ...GROUP, generation: 2 })
    const saved = watch(store.saved('g') as Promise<unknown>)
    for (const each of outcomes.splice(0)) each(new Error('the disk failed'))
    await settled()
    expect(saved.state).toBe('rejected')
    expect(raised).toEqual(['g'])
    const again = watch(store.saved('g') as Promise<unknown>)
    expect(outcomes).toHaveLength(1)
    outcomes[0]?.()
    await settled()
    expect(again.state).toBe('resolved')
    expect(generation()).toBe(2)
  })

  it('lets what failed go along with what comes next', async () => {
    const { store, outcomes, generation } = failing()
    store.put('g', GROUP)
    outcomes.shift()?.(new Error('the disk failed'))
    await settled()
    store.drop('g', 'a')
    outcomes.shift()?.()
    await settled()
    expect(generation()).toBe(1)
    expect(store.saved('g')).toBeUndefined()
  })

  it('does not take back what was stored by what failed before it', async () => {
    const { store, outcomes, generation } = failing()
    store.put('g', GROUP)
    store.put('g', { ...GROUP, generation: 2 })
    outcomes[0]?.(new Error('the disk failed'))
    outcomes[1]?.()
    await settled()
    expect(store.saved('g')).toBeUndefined()
    expect(generation()).toBe(2)
  })
})
