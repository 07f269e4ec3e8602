/** The states of a classic group: who is in a generation, when one begins, and who is out of it. */
import { describe, expect, it } from 'vitest'
import { bytes, type Client, GroupKit, protocol, REBALANCE_MS, SESSION_MS } from './classic-kit.ts'

/** Joins with an id that it is given first, as newer clients do. */
async function invited(kit: GroupKit): Promise<Client> {
  const client = kit.client({ requiresId: true })
  client.join()
  await kit.clock.settle()
  return client
}

describe('the first member', () => {
  it('begins generation 1, leads it, and hears of all members', async () => {
    const kit = new GroupKit()
    const a = kit.client()
    a.join()
    await kit.clock.settle()
    expect(a.joined).toEqual({
      error: 'NONE',
      memberId: expect.stringMatching(/^client-[0-9a-f-]{36}$/),
      generation: 1,
      protocolType: 'consumer',
      protocolName: 'range',
      leader: a.memberId,
      skipAssignment: false,
      members: [{ memberId: a.memberId, instanceId: null, metadata: bytes('range') }],
    })
    expect(kit.group.state).toBe('CompletingRebalance')
  })

  it('takes an id first where it has to, and no generation begins by that', async () => {
    const kit = new GroupKit()
    const a = await invited(kit)
    expect(a.joined).toMatchObject({ error: 'MEMBER_ID_REQUIRED', generation: -1, members: [] })
    expect(a.memberId).not.toBe('')
    expect([kit.group.state, kit.group.generation, kit.group.isVacant]).toEqual(['Empty', 0, true])
    a.join()
    await kit.clock.settle()
    expect(a.joined).toMatchObject({ error: 'NONE', generation: 1, leader: a.memberId })
  })

  it('loses its id when it does not come with it within its session timeout', async () => {
    const kit = new GroupKit()
    const a = await invited(kit)
    await kit.clock.advance(SESSION_MS)
    expect(kit.group.isVacant).toBe(true)
    a.join()
    await kit.clock.settle()
    expect(a.joined).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
  })

  it.each([
    ['a protocol type', { protocolType: '' }],
    ['protocols', { protocols: [] }],
  ])('is refused without %s', async (_, said) => {
    const kit = new GroupKit()
    const a = kit.client(said)
    a.join()
    await kit.clock.settle()
    expect(a.joined).toMatchObject({ error: 'INCONSISTENT_GROUP_PROTOCOL' })
    expect(kit.group.isVacant).toBe(true)
  })
})

describe('the initial delay', () => {
  it('lets others come before the first generation, and each of them makes it wait anew', async () => {
    const kit = new GroupKit({ initialRebalanceDelayMs: 3_000 })
    const [a, b] = [kit.client(), kit.client()]
    a.join()
    await kit.clock.advance(2_999)
    b.join()
    await kit.clock.advance(2_999)
    expect([a.joined, b.joined]).toEqual([undefined, undefined])
    await kit.clock.advance(1)
    expect([a.generation, b.generation]).toEqual([1, 1])
    expect(a.joined?.members.map(({ memberId }) => memberId)).toEqual([a.memberId, b.memberId])
    expect(b.joined).toMatchObject({ leader: a.memberId, members: [] })
  })

  it('ends at the largest rebalance timeout, however many come', async () => {
    const kit = new GroupKit({ initialRebalanceDelayMs: 3_000 })
    const first = kit.client({ rebalanceTimeoutMs: 7_000 })
    first.join()
    for (let i = 0; i < 3; i++) {
      await kit.clock.advance(2_000)
      kit.client({ rebalanceTimeoutMs: 5_000 }).join()
    }
    await kit.clock.advance(999)
    expect(first.joined).toBeUndefined()
    await kit.clock.advance(1)
    expect(first.joined?.members).toHaveLength(4)
  })

  it('is nobody’s, once all have left', async () => {
    const kit = new GroupKit({ initialRebalanceDelayMs: 3_000 })
    const a = kit.client()
    a.join()
    a.disconnect()
    await kit.clock.settle()
    expect([kit.group.state, kit.group.members.size, kit.due.size]).toEqual(['Empty', 0, 0])
  })
})

describe('a generation', () => {
  it('is the leader’s to assign: the others get what it gave them, whoever syncs first', async () => {
    const kit = new GroupKit()
    const [a, b, c] = (await kit.stable(3)) as [Client, Client, Client]
    expect([a.assignment, b.assignment, c.assignment]).toEqual(['a', 'b', 'c'])
    expect(kit.group.state).toBe('Stable')
  })

  it('takes no assignment from anybody but the leader', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2)) as [Client, Client]
    a.join()
    b.join()
    await kit.clock.settle()
    b.sync([[b.memberId, bytes('stolen')]])
    await kit.clock.settle()
    expect(b.synced).toBeUndefined()
    a.sync([[b.memberId, bytes('given')]])
    await kit.clock.settle()
    expect(b.assignment).toBe('given')
    b.sync([[b.memberId, bytes('stolen')]])
    await kit.clock.settle()
    expect(b.assignment).toBe('given')
  })

  it('gives nothing to whom the leader forgot, and nothing to strangers', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2)) as [Client, Client]
    a.join()
    b.join()
    await kit.clock.settle()
    b.sync()
    a.sync([['a stranger', bytes('x')]])
    await kit.clock.settle()
    expect(b.synced).toEqual({
      error: 'NONE',
      protocolType: 'consumer',
      protocolName: 'range',
      assignment: bytes(''),
    })
  })

  it('refuses who is of another one', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    for (const generation of [0, 2]) {
      expect(a.heartbeat(generation)).toBe('ILLEGAL_GENERATION')
      expect(a.commit(generation)).toBe('ILLEGAL_GENERATION')
    }
    expect([a.heartbeat(), a.commit()]).toEqual(['NONE', 'NONE'])
    a.generation = 2
    a.sync()
    await kit.clock.settle()
    expect(a.synced).toMatchObject({ error: 'ILLEGAL_GENERATION' })
    a.memberId = 'a stranger'
    expect(a.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
  })

  it('grows only by a rebalance: a member that joins again and says the same hears of the one there is', async () => {
    const kit = new GroupKit()
    const [, b] = (await kit.stable(2)) as [Client, Client]
    const { generation } = kit.group
    b.join()
    await kit.clock.settle()
    expect(b.joined).toMatchObject({ error: 'NONE', generation, members: [] })
    b.sync()
    await kit.clock.settle()
    expect(b.assignment).toBe('b')
    expect([kit.group.state, kit.generations]).toEqual(['Stable', [1, 2]])
  })

  it('is answered again to a member that did not hear of it, also the leader', async () => {
    const kit = new GroupKit()
    const a = kit.client()
    a.join()
    await kit.clock.settle()
    a.join()
    await kit.clock.settle()
    expect(a.joined).toMatchObject({ generation: 1, members: [{ memberId: a.memberId }] })
    expect(kit.generations).toEqual([1])
  })

  it.each([
    ['the leader joins again', 0, {}],
    ['a member says something new', 1, { protocols: [protocol('range', 'other topics')] }],
    ['a member says more', 1, { protocols: [protocol('range'), protocol('sticky')] }],
  ])('gives way to the next one when %s', async (_, who, changes) => {
    const kit = new GroupKit()
    const clients = await kit.stable(2)
    const [joins, other] = (who === 0 ? clients : clients.toReversed()) as [Client, Client]
    joins.join(changes)
    await kit.clock.settle()
    expect([kit.group.state, joins.joined]).toEqual(['PreparingRebalance', undefined])
    expect([other.heartbeat(), other.commit()]).toEqual(['REBALANCE_IN_PROGRESS', 'NONE'])
    other.join()
    await kit.clock.settle()
    expect([joins.generation, other.generation]).toEqual([3, 3])
  })

  it('after the last one is the first again', async () => {
    const kit = new GroupKit()
    kit.group.generation = 2 ** 31 - 1
    const a = kit.client()
    a.join()
    await kit.clock.settle()
    expect(a.generation).toBe(1)
  })

  it('holds commits back until it is assigned', async () => {
    const kit = new GroupKit()
    const a = kit.client()
    a.join()
    await kit.clock.settle()
    expect([a.heartbeat(), a.commit()]).toEqual(['NONE', 'REBALANCE_IN_PROGRESS'])
    expect(a.commit(1, true)).toBe('NONE')
    a.sync()
    expect(a.commit()).toBe('NONE')
  })
})

describe('a protocol', () => {
  it('is voted for, among those that all know', async () => {
    const kit = new GroupKit({ initialRebalanceDelayMs: 1_000 })
    const likes = [
      ['a', 'b', 'x'],
      ['b', 'a', 'y'],
      ['z', 'b', 'a'],
    ]
    const clients = likes.map((names) => kit.client({ protocols: names.map((name) => protocol(name)) }))
    for (const each of clients) each.join()
    await kit.clock.advance(1_000)
    expect(clients.map(({ joined }) => joined?.protocolName)).toEqual(['b', 'b', 'b'])
    expect(clients[0]?.joined?.members.map(({ metadata }) => metadata)).toEqual(likes.map(() => bytes('b')))
  })

  it('is the first one’s choice where votes are equal', async () => {
    const kit = new GroupKit({ initialRebalanceDelayMs: 1_000 })
    const clients = [
      ['a', 'b'],
      ['b', 'a'],
    ].map((names) => kit.client({ protocols: names.map((name) => protocol(name)) }))
    for (const each of clients) each.join()
    await kit.clock.advance(1_000)
    expect(clients[1]?.joined?.protocolName).toBe('a')
  })

  it.each([
    ['that nobody else knows', { protocols: [protocol('sticky')] }],
    ['of another type', { protocolType: 'connect' }],
  ])('%s keeps its member out', async (_, said) => {
    const kit = new GroupKit()
    await kit.stable(1)
    const late = kit.client(said)
    late.join()
    await kit.clock.settle()
    expect(late.joined).toMatchObject({ error: 'INCONSISTENT_GROUP_PROTOCOL', memberId: '' })
    expect(kit.group.state).toBe('Stable')
  })

  it('of a group that is empty again is open', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    a.leave()
    const b = kit.client({ protocolType: 'connect', protocols: [protocol('sessioned')] })
    b.join()
    await kit.clock.settle()
    expect(b.joined).toMatchObject({ protocolType: 'connect', protocolName: 'sessioned', generation: 3 })
  })

  it('that a sync does not mean is told', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    for (const said of [{ protocolType: 'connect' }, { protocolName: 'sticky' }]) {
      a.sync([], said)
      await kit.clock.settle()
      expect(a.synced).toMatchObject({ error: 'INCONSISTENT_GROUP_PROTOCOL' })
    }
    a.sync([], { protocolType: 'consumer', protocolName: 'range' })
    await kit.clock.settle()
    expect(a.synced).toMatchObject({ error: 'NONE' })
  })
})

describe('a rebalance', () => {
  it('waits as long as the most patient member would, then goes on without those that did not come', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2, { sessionTimeoutMs: 600_000 })) as [Client, Client]
    const late = kit.client({ rebalanceTimeoutMs: 2 * REBALANCE_MS })
    late.join()
    a.join()
    await kit.clock.advance(2 * REBALANCE_MS - 1)
    expect(late.joined).toBeUndefined()
    await kit.clock.advance(1)
    expect(late.joined).toMatchObject({ error: 'NONE', generation: 3, leader: a.memberId })
    expect(a.joined?.members).toHaveLength(2)
    expect(b.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
  })

  it('waits no longer for the most patient one once it has left', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2, { sessionTimeoutMs: 600_000 })) as [Client, Client]
    const patient = kit.client({ rebalanceTimeoutMs: 10 * REBALANCE_MS })
    patient.join()
    a.join()
    await kit.clock.advance(REBALANCE_MS + 1)
    patient.disconnect()
    await kit.clock.advance(0)
    expect(a.joined).toMatchObject({ error: 'NONE', members: [{ memberId: a.memberId }] })
    expect(b.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
  })

  it('gives the lead to somebody who came, where the leader did not', async () => {
    const kit = new GroupKit()
    const [, b] = (await kit.stable(2)) as [Client, Client]
    b.join({ protocols: [protocol('range', 'new')] })
    await kit.clock.advance(REBALANCE_MS)
    expect(b.joined).toMatchObject({ leader: b.memberId, generation: 3 })
  })

  it('waits for an id that was given out', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    const b = await invited(kit)
    a.join()
    await kit.clock.settle()
    expect(a.joined).toBeUndefined()
    b.join()
    await kit.clock.settle()
    expect(a.joined?.members).toHaveLength(2)
  })

  it('waits for it no longer than it is good', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    await invited(kit)
    a.join()
    await kit.clock.advance(SESSION_MS)
    expect(a.joined).toMatchObject({ error: 'NONE', members: [{ memberId: a.memberId }] })
  })

  it('sends those away who wait for an assignment of the generation before', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2)) as [Client, Client]
    a.join()
    b.join()
    await kit.clock.settle()
    b.sync()
    kit.client().join()
    await kit.clock.settle()
    expect(b.synced).toMatchObject({ error: 'REBALANCE_IN_PROGRESS' })
    a.sync()
    await kit.clock.settle()
    expect(a.synced).toMatchObject({ error: 'REBALANCE_IN_PROGRESS' })
  })

  it('puts out who joined and never synced, the leader too', async () => {
    const kit = new GroupKit()
    const said = { sessionTimeoutMs: 600_000 }
    const [a, b] = (await kit.stable(2, said)) as [Client, Client]
    a.join()
    b.join()
    await kit.clock.settle()
    b.sync()
    await kit.clock.advance(REBALANCE_MS - 1)
    expect(b.synced).toBeUndefined()
    await kit.clock.advance(1)
    expect(b.synced).toMatchObject({ error: 'REBALANCE_IN_PROGRESS' })
    expect(a.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
    b.join()
    await kit.clock.settle()
    expect(b.joined).toMatchObject({ leader: b.memberId, generation: 4 })
  })

  it('puts out a follower who never synced, though the others are assigned', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2, { sessionTimeoutMs: 600_000 })) as [Client, Client]
    a.join()
    b.join()
    await kit.clock.settle()
    a.sync()
    await kit.clock.advance(REBALANCE_MS)
    expect([kit.group.state, b.heartbeat(), a.heartbeat()]).toEqual([
      'PreparingRebalance',
      'UNKNOWN_MEMBER_ID',
      'REBALANCE_IN_PROGRESS',
    ])
  })
})

describe('a session', () => {
  it('ends when nothing is heard of the member, and the others rebalance', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2)) as [Client, Client]
    await kit.clock.advance(SESSION_MS - 1)
    expect(a.heartbeat()).toBe('NONE')
    await kit.clock.advance(1)
    expect(b.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
    expect(a.heartbeat()).toBe('REBALANCE_IN_PROGRESS')
  })

  it('is kept up by commits', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    for (let i = 0; i < 5; i++) {
      await kit.clock.advance(SESSION_MS - 1)
      expect(a.commit()).toBe('NONE')
    }
  })

  it('does not end while the member waits for the others, nor for the leader', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2, { sessionTimeoutMs: 20_000 })) as [Client, Client]
    b.join({ protocols: [protocol('range', 'new')] })
    for (let i = 0; i < 3; i++) {
      await kit.clock.advance(19_000)
      expect([a.heartbeat(), b.joined]).toEqual(['REBALANCE_IN_PROGRESS', undefined])
    }
    a.join()
    await kit.clock.settle()
    b.sync()
    for (let i = 0; i < 3; i++) {
      await kit.clock.advance(19_000)
      expect([a.heartbeat(), b.synced]).toEqual(['NONE', undefined])
    }
    a.sync([[b.memberId, bytes('b')]])
    await kit.clock.settle()
    expect(b.assignment).toBe('b')
    await kit.clock.advance(20_000)
    expect(kit.group.members.size).toBe(0)
  })

  it('of the last member ends the group’s', async () => {
    const kit = new GroupKit()
    await kit.stable(1)
    await kit.clock.advance(SESSION_MS)
    expect([kit.group.state, kit.group.generation, kit.group.protocolName]).toEqual(['Empty', 2, null])
    expect(kit.group.protocolType).toBe('consumer')
    expect(kit.group.emptySince).toBe(kit.clock.now())
    expect(kit.due.size).toBe(0)
  })
})

describe('a member whose connection is gone', () => {
  it('is out at once where it was never told its id: nobody will hear of it', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    const b = kit.client()
    b.join()
    b.disconnect()
    await kit.clock.settle()
    expect(b.joined).toBeNull()
    expect(kit.group.members.size).toBe(1)
    a.join()
    await kit.clock.settle()
    expect(a.joined?.members).toHaveLength(1)
  })

  it('counts as joined where it knows its id, and is told again when it comes', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    const b = await invited(kit)
    b.join()
    b.disconnect()
    a.join()
    await kit.clock.settle()
    expect(b.joined).toBeNull()
    expect(a.joined?.members).toHaveLength(2)
    b.join()
    await kit.clock.settle()
    expect(b.joined).toMatchObject({ error: 'NONE', generation: 2, leader: a.memberId })
  })

  it('has its session to come back', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    const b = await invited(kit)
    b.join()
    b.disconnect()
    a.join()
    await kit.clock.settle()
    a.sync()
    await kit.clock.advance(SESSION_MS - 1)
    expect(a.heartbeat()).toBe('NONE')
    await kit.clock.advance(1)
    expect(b.heartbeat(2)).toBe('UNKNOWN_MEMBER_ID')
  })

  it('waits no more for an assignment', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2)) as [Client, Client]
    a.join()
    b.join()
    await kit.clock.settle()
    b.sync()
    b.disconnect()
    await kit.clock.settle()
    expect(b.synced).toBeNull()
    a.sync([[b.memberId, bytes('b')]])
    b.sync()
    await kit.clock.settle()
    expect(b.assignment).toBe('b')
  })

  it('that asks again, while the first request waits, is answered the second', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2)) as [Client, Client]
    b.join({ protocols: [protocol('range', 'new')] })
    await kit.clock.settle()
    b.join()
    await kit.clock.settle()
    expect(b.joined).toMatchObject({ error: 'REBALANCE_IN_PROGRESS' })
    a.join()
    await kit.clock.settle()
    expect([b.generation, b.isWaiting]).toEqual([3, false])
  })

  it('is not waited for longer than five minutes, where it is new', async () => {
    const kit = new GroupKit()
    const said = { sessionTimeoutMs: 900_000, rebalanceTimeoutMs: 900_000 }
    await kit.stable(1, said)
    const b = kit.client(said)
    b.join()
    await kit.clock.advance(299_999)
    expect(b.joined).toBeUndefined()
    await kit.clock.advance(1)
    expect(b.joined).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
  })
})

describe('leaving', () => {
  it('makes the others rebalance, one answer for each', async () => {
    const kit = new GroupKit()
    const [a, b, c] = (await kit.stable(3)) as [Client, Client, Client]
    const refs = [b, c].map(({ memberId }) => ({ memberId, instanceId: null }))
    const answers = kit.group.leave([...refs, { memberId: 'a stranger', instanceId: null }])
    expect(answers).toEqual(['NONE', 'NONE', 'UNKNOWN_MEMBER_ID'])
    expect(a.heartbeat()).toBe('REBALANCE_IN_PROGRESS')
    a.join()
    await kit.clock.settle()
    expect(a.joined).toMatchObject({ generation: kit.group.generation, members: [{ memberId: a.memberId }] })
  })

  it('of the last one leaves an empty group', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    expect(a.leave()).toBe('NONE')
    expect([kit.group.state, kit.group.isVacant, kit.due.size]).toEqual(['Empty', true, 0])
    expect(a.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
  })

  it('of strangers changes nothing', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    expect(kit.group.leave([{ memberId: '', instanceId: null }])).toEqual(['UNKNOWN_MEMBER_ID'])
    expect(kit.group.leave([])).toEqual([])
    expect([kit.group.state, a.heartbeat()]).toEqual(['Stable', 'NONE'])
  })

  it('of one that had only taken an id is no rebalance', async () => {
    const kit = new GroupKit()
    const [a] = (await kit.stable(1)) as [Client]
    const b = await invited(kit)
    expect(b.leave()).toBe('NONE')
    expect([kit.group.state, a.heartbeat()]).toEqual(['Stable', 'NONE'])
  })

  it('answers whoever still waits', async () => {
    const kit = new GroupKit()
    const [, b] = (await kit.stable(2)) as [Client, Client]
    b.join({ protocols: [protocol('range', 'new')] })
    b.leave()
    await kit.clock.settle()
    expect(b.joined).toMatchObject({ error: 'UNKNOWN_MEMBER_ID', memberId: '' })
  })
})

describe('commits', () => {
  it('of no member are for a group without members', async () => {
    const kit = new GroupKit()
    const nobody = kit.client()
    expect([nobody.commit(), nobody.commit(1)]).toEqual(['NONE', 'UNKNOWN_MEMBER_ID'])
    await kit.stable(1)
    expect(nobody.commit()).toBe('UNKNOWN_MEMBER_ID')
    expect(nobody.commit(-1, true)).toBe('NONE')
    nobody.memberId = 'a stranger'
    expect(nobody.commit(-1, true)).toBe('UNKNOWN_MEMBER_ID')
  })
})

describe('a full group', () => {
  it('takes nobody new, nor gives an id; who is in it may join again', async () => {
    const kit = new GroupKit({ maxSize: 2 })
    const [a] = (await kit.stable(1)) as [Client]
    const b = await invited(kit)
    for (const requiresId of [true, false]) {
      const c = kit.client({ requiresId })
      c.join()
      await kit.clock.settle()
      expect(c.joined).toMatchObject({ error: 'GROUP_MAX_SIZE_REACHED' })
    }
    a.join()
    b.join()
    await kit.clock.settle()
    expect([a.joined?.error, b.joined?.error]).toEqual(['NONE', 'NONE'])
  })
})

describe('the end', () => {
  it('answers all who wait, and leaves no timer', async () => {
    const kit = new GroupKit()
    const [a, b] = (await kit.stable(2)) as [Client, Client]
    a.join()
    const c = await invited(kit)
    kit.group.end()
    await kit.clock.settle()
    expect(a.joined).toMatchObject({ error: 'COORDINATOR_NOT_AVAILABLE' })
    expect([b.heartbeat(), b.commit()]).toEqual(['COORDINATOR_NOT_AVAILABLE', 'COORDINATOR_NOT_AVAILABLE'])
    b.sync()
    await kit.clock.settle()
    expect(b.synced).toMatchObject({ error: 'COORDINATOR_NOT_AVAILABLE' })
    expect([kit.due.size, kit.group.state, c.memberId === '']).toEqual([0, 'Dead', false])
  })
})

describe('what a group reads', () => {
  it('is what its members subscribe to under the protocol they chose', async () => {
    const kit = new GroupKit({ initialRebalanceDelayMs: 1 })
    const topics = [
      ['a', 'b'],
      ['b', 'c'],
    ]
    for (const each of topics) {
      kit.client({ protocols: [protocol('range', 'r', each), protocol('own', 'o', null)] }).join()
    }
    expect(kit.group.topics).toBeNull()
    await kit.clock.advance(1)
    expect([...(kit.group.topics ?? [])]).toEqual(['a', 'b', 'c'])
  })

  it('cannot be told of others than consumers', async () => {
    const kit = new GroupKit()
    await kit.stable(1, { protocolType: 'connect', protocols: [protocol('x', 'x', ['a'])] })
    expect(kit.group.topics).toBeNull()
  })
})
