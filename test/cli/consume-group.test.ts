/**
 * `odradek consume --group` among members that do as a test says: a leader of our own gives it what it has. What waits
 * for a heartbeat takes three seconds, so the cases run at once.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KafkaCluster } from '../../src/client/cluster.ts'
import { committedOffsets } from '../../src/client/group-offsets.ts'
import { describeGroup } from '../../src/client/groups.ts'
import { startTestServer, type TestServer } from '../../src/testing/test-server.ts'
import { assignmentBytes, subscriptionBytes } from '../../src/wire/consumer-protocol.ts'
import { joinGroup } from '../../src/wire/messages/11-join-group.ts'
import { leaveGroup } from '../../src/wire/messages/13-leave-group.ts'
import { syncGroup } from '../../src/wire/messages/14-sync-group.ts'
import { addressOf, CONNECTION } from '../client/kit.ts'
import { Captured, odradekWith, type Ran } from './kit.ts'

const codeOf = ({ errorCode }: { readonly errorCode: number }): number => errorCode

let kafka: TestServer
let cluster: KafkaCluster

beforeAll(async () => {
  kafka = await startTestServer()
  cluster = new KafkaCluster([addressOf(kafka.bootstrap)], CONNECTION)
  await kafka.broker.createTopic('orders')
  await kafka.broker.publish('orders', 'a')
  await kafka.broker.publish('orders', 'b')
})
afterAll(async () => {
  await cluster.close()
  await kafka.close()
})

function consume(group: string, stop: AbortController, ...args: readonly string[]): Promise<Ran> {
  const io = { env: { ODRADEK_BROKERS: kafka.bootstrap }, interrupted: () => stop.signal }
  return odradekWith(io, 'consume', 'orders', '-g', group, '-f', '%s', ...args)
}

/** The first member of a group. It keeps the only partition, and gives the others nothing. */
class Leader {
  readonly #group: string
  #memberId = ''

  constructor(group: string) {
    this.#group = group
  }

  async lead(): Promise<void> {
    const group = this.#group
    const protocols = [{ name: 'range', metadata: subscriptionBytes(['orders']) }]
    const body = {
      groupId: group,
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 30_000,
      protocolType: 'consumer',
    }
    const join = () =>
      cluster.askCoordinator(
        group,
        joinGroup,
        { ...body, memberId: this.#memberId, groupInstanceId: null, protocols, reason: null },
        codeOf,
        { waitMs: 30_000 },
      )
    let joined = await join()
    this.#memberId = joined.memberId
    if (joined.errorCode !== 0) joined = await join()
    const assignments = joined.members.map(({ memberId }) => ({
      memberId,
      assignment: assignmentBytes(memberId === this.#memberId ? [{ topic: 'orders', partitions: [0] }] : []),
    }))
    const as = { groupId: group, generationId: joined.generationId, memberId: this.#memberId }
    const of = { groupInstanceId: null, protocolType: 'consumer', protocolName: 'range' }
    expect(
      codeOf(await cluster.askCoordinator(group, syncGroup, { ...as, ...of, assignments }, codeOf)),
    ).toBe(0)
  }

  /** Once another one has come, which makes it lead again. */
  async leadWithAnother(): Promise<void> {
    while ((await describeGroup(cluster, this.#group)).members.length < 2) await cluster.pause(5)
    await this.lead()
  }

  async leave(): Promise<void> {
    const members = [{ memberId: this.#memberId, groupInstanceId: null, reason: null }]
    const body = { groupId: this.#group, memberId: this.#memberId, members }
    expect(codeOf(await cluster.askCoordinator(this.#group, leaveGroup, body, codeOf))).toBe(0)
  }
}

describe.concurrent('odradek consume --group', () => {
  it('waits where it has nothing to read, and reads what it gets when another one leaves', async () => {
    const leader = new Leader('waits')
    await leader.lead()
    const consuming = consume('waits', new AbortController(), '-n', '2')
    await leader.leadWithAnother()
    await leader.leave()
    expect(await consuming).toEqual({ code: 0, stdout: 'ab', stderr: '' })
  })

  it('ends at once with --exit where it has nothing to read', async () => {
    const leader = new Leader('exits')
    await leader.lead()
    const consuming = consume('exits', new AbortController(), '--exit')
    await leader.leadWithAnother()
    expect(await consuming).toEqual({ code: 0, stdout: '', stderr: '' })
    await leader.leave()
  })

  it('ends where it is interrupted while it waits for something to read, and for the others', async () => {
    for (const hasJoined of [true, false]) {
      const group = `stops-${hasJoined}`
      const [leader, stop] = [new Leader(group), new AbortController()]
      await leader.lead()
      const consuming = consume(group, stop)
      if (hasJoined) await leader.leadWithAnother()
      else while ((await describeGroup(cluster, group)).members.length < 2) await cluster.pause(5)
      stop.abort()
      expect(await consuming).toEqual({ code: 0, stdout: '', stderr: '' })
      await leader.leave()
    }
  })

  it('ends where the broker refuses its heartbeats for good, and says so', async () => {
    await using other = await startTestServer()
    await other.broker.createTopic('orders')
    other.faults.error('GROUP_AUTHORIZATION_FAILED', { api: 'Heartbeat' })
    const io = { env: { ODRADEK_BROKERS: other.bootstrap } }
    const { code, stderr } = await odradekWith(io, 'consume', 'orders', '-g', 'refused')
    expect(code).toBe(1)
    expect(stderr).toBe('odradek: REFUSED: group "refused": GROUP_AUTHORIZATION_FAILED\n')
  })

  it('says that what it printed may be printed again where its commit comes too late', async () => {
    await using other = await startTestServer()
    await other.broker.createTopic('orders')
    for (const value of ['a', 'b']) await other.broker.publish('orders', value)
    other.faults.error('ILLEGAL_GENERATION', { api: 'OffsetCommit', times: 1 })
    const io = { env: { ODRADEK_BROKERS: other.bootstrap } }
    const late = await odradekWith(io, 'consume', 'orders', '-g', 'late', '-n', '1', '-f', '%s')
    expect(late).toEqual({
      code: 0,
      stdout: 'a',
      stderr: 'odradek: the group went on without this member: what it printed last may be printed again\n',
    })
    expect((await odradekWith(io, 'consume', 'orders', '-g', 'late', '-n', '1', '-f', '%s')).stdout).toBe('a')
    const there = new KafkaCluster([addressOf(other.bootstrap)], CONNECTION)
    expect([...(await committedOffsets(there, 'late')).values()]).toEqual([
      { topic: 'orders', partition: 0, offset: 1 },
    ])
    await there.close()
  })

  it('ends where it is interrupted while nobody tells it where to read', async () => {
    await using other = await startTestServer()
    await other.broker.createTopic('orders')
    const stop = new AbortController()
    other.faults.drop({ api: 'OffsetFetch' })
    other.faults.onRequest(({ api }) => api === 'OffsetFetch' && stop.abort())
    const io = {
      env: { ODRADEK_BROKERS: other.bootstrap },
      stdout: new Captured(),
      interrupted: () => stop.signal,
    }
    expect(await odradekWith(io, 'consume', 'orders', '-g', 'lost')).toMatchObject({ code: 0, stderr: '' })
  })
})
