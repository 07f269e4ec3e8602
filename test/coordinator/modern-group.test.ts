/** Modern groups: epochs, targets, and how members get there, on the manual clock. */
import { describe, expect, it } from 'vitest'
import type { TopicPattern } from '../../src/coordinator/modern-requests.ts'
import { type Client, digits, ModernKit, REBALANCE_MS, SESSION_MS } from './modern-kit.ts'

const startsWith = (prefix: string): TopicPattern => ({
  source: prefix === '' ? '' : `${prefix}.*`,
  matches: (name) => name.startsWith(prefix),
})

function memberOf({ group }: ModernKit, { memberId }: Client) {
  return [...group.members].find(({ id }) => id === memberId)
}

describe('joining', () => {
  it('gives the first member all at once, and the epoch of the target', () => {
    const kit = new ModernKit()
    const a = kit.client()
    expect(a.beat()).toMatchObject({
      error: 'NONE',
      memberId: a.memberId,
      epoch: 1,
      heartbeatIntervalMs: 5_000,
    })
    expect(a.digits).toBe('012345')
    expect(kit.group.state).toBe('Stable')
    expect(kit.epochs).toEqual([1])
  })

  it('makes an id for whoever has none', () => {
    const kit = new ModernKit()
    const a = kit.client()
    a.memberId = ''
    a.beat()
    expect(a.memberId).toMatch(/^[0-9a-f-]{36}$/)
    expect(a.beat()).toMatchObject({ error: 'NONE', assigned: null })
  })

  it('counts who subscribes to nothing', () => {
    const kit = new ModernKit()
    const a = kit.client({ topicNames: [] })
    expect(a.beat()).toMatchObject({ error: 'NONE', epoch: 1, assigned: new Set() })
    expect(kit.group.state).toBe('Stable')
  })

  it('ends where the group is full', () => {
    const kit = new ModernKit({ orders: 6 }, 2)
    const [a] = kit.settled(2)
    expect(kit.client().send()).toMatchObject({ error: 'GROUP_MAX_SIZE_REACHED' })
    expect(a?.beat()).toMatchObject({ error: 'NONE' })
    expect(kit.group.members.size).toBe(2)
  })

  it('again, of the same program, owns nothing, and is no second member', () => {
    const kit = new ModernKit()
    const [a, b] = kit.settled(2) as [Client, Client]
    const held = a.digits
    expect(a.beat({ epoch: 0, ...all })).toMatchObject({ error: 'NONE', epoch: kit.group.epoch })
    expect(a.digits).toBe(held)
    expect(kit.group.members.size).toBe(2)
    expect(b.beat()).toMatchObject({ error: 'NONE', assigned: null })
  })

  const all = { topicNames: ['orders'], owned: new Set<string>(), rebalanceTimeoutMs: REBALANCE_MS }
})

describe('a second member', () => {
  it('is given a partition once the first says that it owns it no more, and not before', () => {
    const kit = new ModernKit()
    const [a, b] = [kit.client(), kit.client()]
    a.beat()
    expect(b.beat()).toMatchObject({ error: 'NONE', epoch: 2, assigned: new Set() })
    expect(kit.group.state).toBe('Reconciling')

    // It hears what to give up, in the epoch that it has, and is not done with it.
    expect(a.hear()).toMatchObject({ epoch: 1 })
    expect(a.assigned.size).toBe(3)
    expect(b.beat()).toMatchObject({ epoch: 2, assigned: null })
    expect(a.hear()).toMatchObject({ epoch: 1, assigned: null })
    expect(b.beat()).toMatchObject({ assigned: null })

    a.obey()
    expect(a.hear()).toMatchObject({ epoch: 2, assigned: null })
    expect(b.beat().assigned?.size).toBe(3)
    expect(digits(new Set([...a.assigned, ...b.assigned]))).toBe('012345')
    expect(kit.group.state).toBe('Stable')
    expect(kit.group.epoch).toBe(2)
  })

  it('is not given what the first says nothing of', () => {
    const kit = new ModernKit()
    const [a, b] = [kit.client(), kit.client()]
    for (const each of [a, b, a]) each.beat()
    expect(a.beat({ owned: null })).toMatchObject({ epoch: 1, assigned: null })
    expect(b.beat()).toMatchObject({ assigned: null })
    a.beat()
    expect(b.beat().assigned?.size).toBe(3)
  })

  it('gets it all the same from whoever keeps it for its rebalance timeout, who is out then', async () => {
    const kit = new ModernKit()
    const a = kit.client({ rebalanceTimeoutMs: 20_000 })
    const b = kit.client()
    for (const each of [a, b]) each.beat()
    a.hear()
    for (let i = 0; i < 4; i++) {
      await kit.clock.advance(4_999)
      expect(a.hear()).toMatchObject({ error: 'NONE' })
      b.beat()
    }
    await kit.clock.advance(4)
    expect(a.hear()).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    b.beat()
    expect(b.digits).toBe('012345')
    expect(kit.due.size).toBe(1)
  })

  it('changes nothing for whoever has given up in time', async () => {
    const kit = new ModernKit()
    const [a, b] = kit.settled(2, { rebalanceTimeoutMs: 20_000 }) as [Client, Client]
    await kit.clock.advance(30_000)
    expect(a.beat()).toMatchObject({ error: 'NONE' })
    expect(b.beat()).toMatchObject({ error: 'NONE' })
  })

  it('may be gone before the first has heard of it', () => {
    const kit = new ModernKit()
    const [a, b] = [kit.client(), kit.client()]
    for (const each of [a, b]) each.beat()
    b.send({ epoch: -1 })
    expect(a.beat()).toMatchObject({ epoch: 3, assigned: null })
    expect(kit.group.state).toBe('Stable')
  })

  it('may be gone while the first gives up, which then gets it back', () => {
    const kit = new ModernKit()
    const [a, b] = [kit.client(), kit.client()]
    for (const each of [a, b, a]) each.beat()
    expect(a.assigned.size).toBe(3)
    b.send({ epoch: -1 })
    a.beat()
    expect(a.digits).toBe('012345')
    expect(a.epoch).toBe(3)
  })
})

describe('a third member', () => {
  it('comes while the first two are not done: a step at a time, and nobody is told two things', () => {
    const kit = new ModernKit()
    const [a, b, c] = [kit.client(), kit.client(), kit.client()]
    for (const each of [a, b]) each.beat()
    a.hear()
    c.beat()
    a.obey()
    // What it gave up for epoch 2 is acknowledged, and it is asked for more.
    expect(a.hear()).toMatchObject({ epoch: 2 })
    expect(a.assigned.size).toBe(2)
    a.obey()
    kit.settle([a, b, c])
    expect([a, b, c].map(({ assigned }) => assigned.size)).toEqual([2, 2, 2])
    expect([a, b, c].map(({ epoch }) => epoch)).toEqual([3, 3, 3])
  })
})

describe('an epoch', () => {
  it('that was never given is fenced, as is one of long ago', () => {
    const kit = new ModernKit()
    const [a, b] = kit.settled(2) as [Client, Client]
    kit.settle([a, b, kit.client()])
    expect(a.epoch).toBe(3)
    expect(a.send({ epoch: 4 })).toMatchObject({ error: 'FENCED_MEMBER_EPOCH' })
    expect(a.send({ epoch: 1 })).toMatchObject({ error: 'FENCED_MEMBER_EPOCH' })
    expect(a.send()).toMatchObject({ error: 'NONE' })
  })

  it('before this one is taken from whoever owns no more than it may: an answer was lost', () => {
    const kit = new ModernKit()
    const [a, b] = [kit.client(), kit.client()]
    for (const each of [a, b, a]) each.beat()
    // The answer that takes it to epoch 2 is lost.
    expect(a.send()).toMatchObject({ epoch: 2 })
    const whole = { topicNames: ['orders'], rebalanceTimeoutMs: REBALANCE_MS }
    expect(a.send({ owned: null, ...whole })).toMatchObject({ error: 'FENCED_MEMBER_EPOCH' })
    const more = new Set([...a.owned, 'another/7'])
    expect(a.send({ owned: more, ...whole })).toMatchObject({ error: 'FENCED_MEMBER_EPOCH' })
    expect(a.send(whole)).toMatchObject({ error: 'NONE', epoch: 2, assigned: a.owned })
  })

  it('begins at 0 for whoever was fenced, who owns nothing then', () => {
    const kit = new ModernKit()
    const [a, b] = kit.settled(2) as [Client, Client]
    expect(a.beat({ epoch: 9 })).toMatchObject({ error: 'FENCED_MEMBER_EPOCH' })
    expect(a.beat()).toMatchObject({ error: 'NONE', epoch: 2 })
    expect(a.assigned.size).toBe(3)
    expect(b.beat()).toMatchObject({ assigned: null })
  })
})

describe('what is told', () => {
  it('is all of it to whoever says all, and nothing to whoever says nothing new', () => {
    const kit = new ModernKit()
    const [a] = kit.settled(1) as [Client]
    expect(a.beat().assigned).toBeNull()
    const whole = { rebalanceTimeoutMs: REBALANCE_MS, topicNames: ['orders'] }
    for (let i = 0; i < 3; i++) expect(digits(a.beat(whole).assigned as ReadonlySet<string>)).toBe('012345')
    expect(a.beat({ rebalanceTimeoutMs: REBALANCE_MS }).assigned).toBeNull()
    const pattern = { rebalanceTimeoutMs: REBALANCE_MS, topicPattern: startsWith('orders') }
    expect(a.beat(pattern).assigned?.size).toBe(6)
  })
})

describe('leaving', () => {
  it('makes room at once', () => {
    const kit = new ModernKit()
    const [a, b] = kit.settled(2) as [Client, Client]
    expect(a.send({ epoch: -1 })).toEqual({
      error: 'NONE',
      memberId: a.memberId,
      epoch: -1,
      heartbeatIntervalMs: 0,
      assigned: null,
    })
    expect(kit.group.state).toBe('Assigning')
    b.beat()
    expect(b.digits).toBe('012345')
    expect(a.send({ epoch: -1 })).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    expect(a.send()).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
  })

  it('of the last one leaves an empty group, with its epoch', async () => {
    const kit = new ModernKit()
    const [a] = kit.settled(1) as [Client]
    await kit.clock.advance(1_000)
    a.send({ epoch: -1 })
    expect(kit.group).toMatchObject({ state: 'Empty', epoch: 2, emptySince: kit.clock.now(), isVacant: true })
    expect(kit.client().beat()).toMatchObject({ epoch: 3 })
  })

  it('happens to whoever is not heard of for a session', async () => {
    const kit = new ModernKit()
    const [a, b] = kit.settled(2) as [Client, Client]
    await kit.clock.advance(SESSION_MS - 1)
    b.beat()
    expect(kit.group.members.size).toBe(2)
    await kit.clock.advance(1)
    expect(kit.group.members.size).toBe(1)
    expect(a.send()).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    b.beat()
    expect(b.digits).toBe('012345')
  })
})

describe('a static member', () => {
  const pair = (): [ModernKit, Client, Client] => {
    const kit = new ModernKit()
    const a = kit.client({ instanceId: 'one' })
    const b = kit.client()
    kit.settle([a, b])
    return [kit, a, b]
  }

  it('that leaves for now keeps its place, for whoever comes as the same instance', () => {
    const [kit, a, b] = pair()
    const { epoch } = kit.group
    expect(a.send({ epoch: -2 })).toMatchObject({ error: 'NONE', epoch: -2 })
    b.beat()
    expect(b.assigned.size).toBe(3)
    const again = kit.client({ instanceId: 'one' })
    expect(again.beat()).toMatchObject({ error: 'NONE', epoch })
    expect(again.digits).toBe(a.digits)
    expect(kit.group.epoch).toBe(epoch)
    expect(b.beat()).toMatchObject({ assigned: null })
    expect(a.send()).toMatchObject({ error: 'FENCED_INSTANCE_ID' })
    expect(kit.group.members.size).toBe(2)
  })

  it('that comes back and subscribes to something else changes the group', () => {
    const [kit, a] = pair()
    a.send({ epoch: -2 })
    const { epoch } = kit.group
    expect(kit.client({ instanceId: 'one', topicNames: [] }).beat()).toMatchObject({
      epoch: epoch + 1,
      assigned: new Set(),
    })
  })

  it('that is away has the epoch of nobody', () => {
    const [kit, a] = pair()
    a.send({ epoch: -2 })
    expect(a.send()).toMatchObject({ error: 'FENCED_MEMBER_EPOCH' })
    const who = { memberId: a.memberId, instanceId: 'one', generation: a.epoch }
    expect(kit.group.checkCommit(who, false)).toBe('STALE_MEMBER_EPOCH')
    expect(kit.group.state).toBe('Reconciling')
  })

  it('that is away for too long is out', async () => {
    const [kit, a, b] = pair()
    await kit.clock.advance(10_000)
    b.beat()
    a.send({ epoch: -2 })
    await kit.clock.advance(SESSION_MS - 10_000)
    expect(kit.group.members.size).toBe(1)
    b.beat()
    expect(b.digits).toBe('012345')
  })

  it('leaves nothing to be given up by whoever comes back', async () => {
    const kit = new ModernKit()
    const a = kit.client({ instanceId: 'one' })
    const b = kit.client()
    for (const each of [a, b]) each.beat()
    a.hear()
    expect(memberOf(kit, a)?.state).toBe('unrevoked')
    a.send({ epoch: -2 })
    b.beat()
    expect(b.assigned.size).toBe(3)
    await kit.clock.advance(SESSION_MS - 1)
    expect(kit.client({ instanceId: 'one' }).beat().assigned?.size).toBe(3)
  })

  it('does not come back under the id of somebody else, who stays', () => {
    const kit = new ModernKit()
    const a = kit.client({ instanceId: 'one' })
    const b = kit.client()
    kit.settle([a, b])
    a.send({ epoch: -2 })
    const back = kit.client({ instanceId: 'one' })
    back.memberId = b.memberId
    expect(back.send()).toMatchObject({ error: 'FENCED_INSTANCE_ID' })
    expect(b.beat().error).toBe('NONE')
    expect(memberOf(kit, b)?.instanceId).toBeNull()
  })

  it('is not replaced while it is here', () => {
    const [kit, a] = pair()
    const other = kit.client({ instanceId: 'one' })
    expect(other.send()).toMatchObject({ error: 'UNRELEASED_INSTANCE_ID' })
    expect(a.send()).toMatchObject({ error: 'NONE' })
    expect(other.send({ epoch: 1 })).toMatchObject({ error: 'FENCED_INSTANCE_ID' })
    expect(other.send({ epoch: -1 })).toMatchObject({ error: 'FENCED_INSTANCE_ID' })
  })

  it('that did not hear that it has joined joins again', () => {
    const [kit, a] = pair()
    expect(a.beat({ epoch: 0, topicNames: ['orders'], owned: new Set() })).toMatchObject({
      error: 'NONE',
      epoch: kit.group.epoch,
    })
    expect(a.assigned.size).toBe(3)
  })

  it('may be named by its id alone, and leaves for good with −1', () => {
    const [kit, a, b] = pair()
    expect(a.send({ instanceId: null })).toMatchObject({ error: 'NONE' })
    a.send({ epoch: -1 })
    expect(kit.group.members.size).toBe(1)
    expect(a.send()).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    b.beat()
    expect(b.assigned.size).toBe(6)
  })

  it('has an id of its own', () => {
    const [kit, , b] = pair()
    const thief = kit.client({ instanceId: 'two' })
    thief.memberId = b.memberId
    expect(thief.send()).toMatchObject({ error: 'FENCED_INSTANCE_ID' })
  })
})

describe('topics', () => {
  it('that come, grow and go change the target of those who subscribe to them', () => {
    const kit = new ModernKit({ orders: 2, others: 1 })
    const [a] = kit.settled(1, { topicNames: ['orders', 'later'] }) as [Client]
    expect([...a.assigned].length).toBe(2)
    kit.create('orders', 3)
    expect(a.beat()).toMatchObject({ epoch: 2 })
    expect(a.digits).toBe('012')
    kit.create('later', 1)
    kit.settle([a])
    expect([a.epoch, a.assigned.size]).toEqual([3, 4])
    kit.delete('orders')
    kit.settle([a])
    expect([a.epoch, a.digits]).toEqual([4, '0'])
  })

  it('that nobody subscribes to change nothing', () => {
    const kit = new ModernKit()
    const [a] = kit.settled(1) as [Client]
    kit.create('others', 3)
    expect(a.beat()).toMatchObject({ epoch: 1, assigned: null })
  })

  it('that are made anew are others', () => {
    const kit = new ModernKit({ orders: 1 })
    const [a] = kit.settled(1) as [Client]
    const before = [...a.assigned]
    kit.delete('orders')
    kit.create('orders', 1)
    kit.settle([a])
    expect([...a.assigned]).not.toEqual(before)
    expect(a.digits).toBe('0')
  })

  it('are named, or found by a pattern, now and later, until that is taken back', () => {
    const kit = new ModernKit({ orders: 1, 'orders.eu': 1, others: 1 })
    const [a] = kit.settled(1, { topicNames: ['others'], topicPattern: startsWith('orders') }) as [Client]
    expect(a.assigned.size).toBe(3)
    expect(kit.group.topics).toEqual(new Set(['orders', 'orders.eu', 'others']))
    kit.create('orders.us', 1)
    kit.settle([a])
    expect(a.assigned.size).toBe(4)
    a.beat({ topicPattern: startsWith('') })
    kit.settle([a])
    expect(a.assigned.size).toBe(1)
    const { epoch } = kit.group
    a.beat({ topicNames: ['others'] })
    expect(kit.group.epoch).toBe(epoch)
  })
})

describe('the assignor', () => {
  it('is the one that most ask for, and uniform where none do', () => {
    const kit = new ModernKit({ a: 3, b: 3 })
    expect(kit.group.assignor).toBe('uniform')
    const [x, y, z] = [
      kit.client({ topicNames: ['a', 'b'], assignor: 'range' }),
      kit.client({ topicNames: ['a', 'b'], assignor: 'range' }),
      kit.client({ topicNames: ['a', 'b'], assignor: 'uniform' }),
    ]
    kit.settle([x, y])
    expect(kit.group.assignor).toBe('range')
    // Runs of neighbours, the same of both topics.
    expect([x.digits, y.digits].sort()).toEqual(['0011', '22'])
    kit.settle([x, y, z])
    expect([x, y, z].map(({ digits: all }) => all).sort()).toEqual(['00', '11', '22'])
    x.send({ epoch: -1 })
    y.beat({ assignor: 'uniform' })
    expect(kit.group.assignor).toBe('uniform')
    kit.settle([y, z])
    expect([y.assigned.size, z.assigned.size]).toEqual([3, 3])
  })

  it('moves no more than it must', () => {
    const kit = new ModernKit()
    const clients = kit.settled(3)
    const before = new Map(clients.map((each) => [each, [...each.assigned]]))
    const fourth = kit.client()
    kit.settle([...clients, fourth])
    expect(fourth.assigned.size).toBe(1)
    const moved = clients.filter((each) => before.get(each)?.some((key) => !each.assigned.has(key)))
    expect(moved).toHaveLength(1)
  })
})

describe('offsets', () => {
  it('are committed by members in their epoch, and by anybody while there are none', () => {
    const kit = new ModernKit()
    const nobody = { memberId: '', instanceId: null, generation: -1 }
    expect(kit.group.checkCommit(nobody, false)).toBe('NONE')
    const [a] = kit.settled(1) as [Client]
    const who = (generation: number) => ({ memberId: a.memberId, instanceId: null, generation })
    expect(kit.group.checkCommit(who(1), false)).toBe('NONE')
    expect(kit.group.checkCommit(who(2), false)).toBe('STALE_MEMBER_EPOCH')
    expect(kit.group.checkCommit(who(0), true)).toBe('STALE_MEMBER_EPOCH')
    expect(kit.group.checkCommit({ ...who(1), memberId: 'x' }, false)).toBe('UNKNOWN_MEMBER_ID')
    expect(kit.group.checkCommit(nobody, false)).toBe('UNKNOWN_MEMBER_ID')
    expect(kit.group.checkCommit(nobody, true)).toBe('NONE')
  })

  it('are told to members in their epoch, and to administrators', () => {
    const kit = new ModernKit()
    const [a] = kit.settled(1) as [Client]
    expect(kit.group.checkFetch(null, -1)).toBe('NONE')
    expect(kit.group.checkFetch('', -1)).toBe('NONE')
    expect(kit.group.checkFetch(a.memberId, 1)).toBe('NONE')
    expect(kit.group.checkFetch(a.memberId, 2)).toBe('STALE_MEMBER_EPOCH')
    expect(kit.group.checkFetch('x', 1)).toBe('UNKNOWN_MEMBER_ID')
    expect(kit.group.checkFetch(null, 1)).toBe('UNKNOWN_MEMBER_ID')
  })
})

it('leaves nothing behind when it ends', () => {
  const kit = new ModernKit()
  const clients = kit.settled(3)
  clients[0]?.hear()
  kit.group.end()
  expect(kit.due.size).toBe(0)
  expect(kit.group.state).toBe('Dead')
  expect(kit.epochs).toEqual([1, 2, 3])
})
