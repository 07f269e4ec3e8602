/** Static members (`group.instance.id`): who goes away and comes back takes his own place. */
import { describe, expect, it, vi } from 'vitest'
import { bytes, type Client, GroupKit, protocol, REBALANCE_MS, SESSION_MS } from './classic-kit.ts'

/** Static members `one`, `two` …, in a stable group. */
async function staticGroup(count: number, said: object = {}) {
  const kit = new GroupKit({ initialRebalanceDelayMs: 1 })
  const names = ['one', 'two', 'three'].slice(0, count)
  const clients = names.map((instanceId) => kit.client({ instanceId, requiresId: true, ...said }))
  for (const each of clients) each.join()
  await kit.clock.advance(1)
  await kit.assign(clients)
  return { kit, clients: clients as [Client, Client, Client] }
}

/** The program was started again: it knows nothing but its instance. */
async function back(kit: GroupKit, client: Client, changes: object = {}): Promise<Client> {
  const again = kit.client({ ...client.said, ...changes })
  again.join()
  await kit.clock.settle()
  return again
}

describe('a static member', () => {
  it('needs no id to come with: its instance is its name', async () => {
    const { kit, clients } = await staticGroup(2)
    expect(clients.map(({ memberId }) => memberId.replace(/-.*/, ''))).toEqual(['one', 'two'])
    expect(clients[0].joined?.members.map(({ instanceId }) => instanceId)).toEqual(['one', 'two'])
    expect(kit.generations).toEqual([1])
  })

  it('that comes back has a new id, its assignment, and there is no rebalance', async () => {
    const { kit, clients } = await staticGroup(2)
    const two = await back(kit, clients[1])
    expect(two.joined).toMatchObject({
      error: 'NONE',
      generation: 1,
      leader: clients[0].memberId,
      members: [],
    })
    expect(two.memberId).not.toBe(clients[1].memberId)
    two.sync()
    await kit.clock.settle()
    expect([two.assignment, kit.group.state, kit.generations]).toEqual(['b', 'Stable', [1]])
  })

  it('that led leads again, and is told to leave the assignment as it is', async () => {
    const { kit, clients } = await staticGroup(2)
    const one = await back(kit, clients[0])
    expect(one.joined).toMatchObject({ generation: 1, leader: one.memberId, skipAssignment: true })
    expect(one.joined?.members).toHaveLength(2)
    one.sync([[one.memberId, bytes('another')]])
    await kit.clock.settle()
    expect([one.assignment, kit.generations]).toEqual(['a', [1]])
  })

  it('that led, and could not be told so, hears that another leads', async () => {
    const { kit, clients } = await staticGroup(2)
    const one = await back(kit, clients[0], { canSkipAssignment: false })
    expect(one.joined).toMatchObject({
      generation: 1,
      leader: clients[0].memberId,
      skipAssignment: false,
      members: [],
    })
    expect(kit.group.state).toBe('Stable')
  })

  it('fences whoever was there under its instance', async () => {
    const { kit, clients } = await staticGroup(2)
    const two = await back(kit, clients[1])
    const former = clients[1]
    expect([former.heartbeat(), former.commit(), former.leave()]).toEqual([
      'FENCED_INSTANCE_ID',
      'FENCED_INSTANCE_ID',
      'FENCED_INSTANCE_ID',
    ])
    former.join()
    former.sync()
    await kit.clock.settle()
    expect([former.joined?.error, former.synced?.error]).toEqual(['FENCED_INSTANCE_ID', 'FENCED_INSTANCE_ID'])
    expect(two.heartbeat()).toBe('NONE')
  })

  it('is unknown under an instance that nobody has', async () => {
    const { kit, clients } = await staticGroup(1)
    const stranger = kit.client({ instanceId: 'nobody' })
    stranger.memberId = clients[0].memberId
    stranger.generation = 1
    expect(stranger.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
  })

  it('that comes back while its former self waits for the others has that one fenced', async () => {
    const { kit, clients } = await staticGroup(2)
    clients[1].join({ protocols: [protocol('range', 'new')] })
    await kit.clock.settle()
    const two = await back(kit, clients[1])
    expect(clients[1].joined).toMatchObject({ error: 'FENCED_INSTANCE_ID', memberId: clients[1].memberId })
    clients[0].join()
    await kit.clock.settle()
    expect(two.joined).toMatchObject({ generation: 2 })
    expect(kit.group.members.size).toBe(2)
  })

  it('that comes back before the leader has assigned makes another generation: its former id may be in the assignment', async () => {
    const { kit, clients } = await staticGroup(2)
    clients[0].join()
    clients[1].join()
    await kit.clock.settle()
    clients[1].sync()
    const two = await back(kit, clients[1])
    expect(clients[1].synced).toMatchObject({ error: 'FENCED_INSTANCE_ID' })
    expect([kit.group.state, two.joined]).toEqual(['PreparingRebalance', undefined])
    clients[0].join()
    await kit.clock.settle()
    expect(two.joined).toMatchObject({ generation: 3 })
  })

  it('that comes back and would change the vote makes another generation', async () => {
    const protocols = [protocol('range'), protocol('sticky')]
    const { kit, clients } = await staticGroup(1, { protocols })
    const one = await back(kit, clients[0], { protocols: protocols.toReversed() })
    expect(one.joined).toMatchObject({ generation: 2, protocolName: 'sticky' })
  })

  it('that is away keeps its place through a rebalance, until its session ends', async () => {
    const { kit, clients } = await staticGroup(3, { sessionTimeoutMs: 3 * REBALANCE_MS })
    const [one, two, three] = clients
    one.join()
    two.join()
    await kit.clock.advance(REBALANCE_MS)
    expect(one.joined?.members.map(({ instanceId }) => instanceId)).toEqual(['one', 'two', 'three'])
    await kit.assign(clients)
    expect(three.synced).toMatchObject({ error: 'ILLEGAL_GENERATION' })
    await kit.clock.advance(REBALANCE_MS + 1)
    expect([one.heartbeat(), two.heartbeat()]).toEqual(['NONE', 'NONE'])
    three.join()
    await kit.clock.settle()
    three.sync()
    await kit.clock.settle()
    expect([three.generation, three.assignment]).toEqual([2, 'c'])
  })

  it('that is away does not lead: somebody who came does', async () => {
    const { kit, clients } = await staticGroup(2, { sessionTimeoutMs: 3 * REBALANCE_MS })
    clients[1].join({ protocols: [protocol('range', 'new')] })
    await kit.clock.advance(REBALANCE_MS)
    expect(clients[1].joined).toMatchObject({ leader: clients[1].memberId, generation: 2 })
    expect(clients[1].joined?.members).toHaveLength(2)
  })

  it('is waited for again where all are away: their sessions decide', async () => {
    const { kit, clients } = await staticGroup(2, { sessionTimeoutMs: 3 * REBALANCE_MS })
    const guest = kit.client({ requiresId: false })
    guest.join()
    guest.disconnect()
    await kit.clock.advance(2 * REBALANCE_MS)
    expect([kit.group.state, kit.group.members.size, kit.group.generation]).toEqual([
      'PreparingRebalance',
      2,
      1,
    ])
    for (const each of clients.slice(0, 2)) expect(each.heartbeat()).toBe('REBALANCE_IN_PROGRESS')
    await kit.clock.advance(3 * REBALANCE_MS)
    expect([kit.group.state, kit.due.size]).toEqual(['Empty', 0])
  })

  it('is out when its session ends, and then is somebody new', async () => {
    const { kit, clients } = await staticGroup(1)
    await kit.clock.advance(SESSION_MS)
    expect(clients[0].heartbeat()).toBe('UNKNOWN_MEMBER_ID')
    const one = await back(kit, clients[0])
    await kit.clock.advance(1)
    expect(one.joined).toMatchObject({ generation: 3 })
  })

  it('may be put out by an administrator who knows its instance', async () => {
    const { kit, clients } = await staticGroup(2)
    const named = (instanceId: string) => kit.group.leave([{ memberId: '', instanceId }])
    expect([named('two'), named('two'), named('nobody')]).toEqual([
      ['NONE'],
      ['UNKNOWN_MEMBER_ID'],
      ['UNKNOWN_MEMBER_ID'],
    ])
    expect(clients[0].heartbeat()).toBe('REBALANCE_IN_PROGRESS')
  })

  it('whose first join lost its connection may come again', async () => {
    const { kit, clients } = await staticGroup(1)
    const two = kit.client({ instanceId: 'two' })
    two.join()
    two.disconnect()
    await kit.clock.settle()
    expect(kit.group.members.size).toBe(2)
    const again = await back(kit, two)
    clients[0].join()
    await kit.clock.settle()
    expect(again.joined).toMatchObject({ generation: 2 })
    expect(kit.group.members.size).toBe(2)
  })

  it('that comes back and never syncs is put out, as its former self would have been', async () => {
    const { kit, clients } = await staticGroup(2, { sessionTimeoutMs: 3 * REBALANCE_MS })
    clients[0].join()
    clients[1].join()
    await kit.clock.settle()
    clients[0].sync()
    const two = await back(kit, clients[1])
    expect([two.joined?.generation, kit.group.state]).toEqual([2, 'Stable'])
    await kit.clock.advance(REBALANCE_MS)
    expect(two.heartbeat()).toBe('UNKNOWN_MEMBER_ID')
  })

  it('that did not sync an earlier generation, and is away in this one, is not put out for that', async () => {
    const { kit, clients } = await staticGroup(2, { sessionTimeoutMs: 5 * REBALANCE_MS })
    const [one, two] = clients
    one.join()
    two.join()
    await kit.clock.settle()
    one.join({ protocols: [protocol('range', 'new')] })
    await kit.clock.advance(REBALANCE_MS)
    one.sync()
    await kit.clock.advance(REBALANCE_MS)
    expect([one.heartbeat(), kit.group.members.size]).toEqual(['NONE', 2])
    two.join()
    await kit.clock.settle()
    expect(two.joined).toMatchObject({ error: 'NONE', generation: 3 })
  })

  it('is the same one in a full group', async () => {
    const kit = new GroupKit({ maxSize: 1 })
    const one = kit.client({ instanceId: 'one' })
    one.join()
    await kit.clock.settle()
    await kit.assign([one])
    const again = await back(kit, one)
    expect(again.joined).toMatchObject({ error: 'NONE' })
  })
})

describe('static members of little patience', () => {
  it('that are all away are looked for once a second, and not for ever at once', async () => {
    const { kit } = await staticGroup(2, { rebalanceTimeoutMs: 5, sessionTimeoutMs: 3 * REBALANCE_MS })
    const guest = kit.client({ requiresId: false, rebalanceTimeoutMs: 5 })
    guest.join()
    guest.disconnect()
    const members = vi.spyOn(kit.group.members, 'patienceMs', 'get')
    await kit.clock.advance(REBALANCE_MS)
    expect(members.mock.calls.length).toBeLessThanOrEqual(2 * (REBALANCE_MS / 1_000) + 10)
    expect(kit.group.state).toBe('PreparingRebalance')
    await kit.clock.advance(3 * REBALANCE_MS)
    expect([kit.group.state, kit.due.size]).toEqual(['Empty', 0])
  })
})
