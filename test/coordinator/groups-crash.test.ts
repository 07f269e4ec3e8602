/**
 * A process that ends anywhere while a group forms: each operation of the disk is the last one once. Nobody is told what
 * the next process does not know, and no partition has two readers among those who go on.
 */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { GroupClient } from '../support/group-client.ts'
import { KafkaMachine } from '../support/kafka-machine.ts'
import { ModernClient } from '../support/modern-client.ts'
import { assigned, formed, moved, rebalance } from './restart-kit.ts'

const PARTITIONS = [0, 1, 2, 3, 4, 5]

async function prepared(): Promise<KafkaMachine> {
  const machine = await KafkaMachine.open()
  await machine.world.broker.createTopic('orders', { partitions: PARTITIONS.length })
  return machine
}

/** Runs `program` once for each operation of the disk that it takes, which is the last one, and then `check`. */
async function endedAnywhere<S>(
  way: 'kill' | 'power loss',
  start: (machine: KafkaMachine) => S,
  program: (state: S) => Promise<void>,
  check: (machine: KafkaMachine, state: S, where: string) => Promise<void>,
): Promise<void> {
  const whole = await prepared()
  const before = whole.operations
  await program(start(whole))
  const operations = whole.operations - before
  expect(operations).toBeGreaterThan(10)
  for (let last = 1; last <= operations; last++) {
    const machine = await prepared()
    const state = start(machine)
    machine.haltIn = last
    machine.haltHow = last % 2 === 0 ? 'before' : 'after'
    await machine.until(program(state))
    if (way === 'kill') await machine.kill()
    else await machine.powerLoss(last)
    await check(machine, state, `${way} at operation ${last}, seed ${last}`)
  }
}

interface ClassicState {
  readonly clients: GroupClient[]
  /** What each reads, by what it was told last, and that it was not asked for since. */
  readonly told: Map<GroupClient, readonly number[]>
}

async function form({ clients, told }: ClassicState): Promise<void> {
  for (let count = 1; count <= clients.length; count++) {
    const those = clients.slice(0, count)
    // Whoever asks to join has nothing until it is told.
    told.clear()
    const parts = await rebalance(those)
    for (const [i, client] of those.entries()) told.set(client, parts[i] as number[])
  }
  await clients.at(-1)?.leave()
}

async function checkClassic(machine: KafkaMachine, { clients, told }: ClassicState, where: string) {
  const { NONE, REBALANCE_IN_PROGRESS } = KAFKA_ERRORS
  const here = moved(clients, machine.world)
  const isLeaving = told.size === clients.length
  for (const [i, client] of here.entries()) {
    const former = clients[i] as GroupClient
    const error = await client.heartbeat()
    if (told.has(former) && !(isLeaving && i === clients.length - 1)) {
      expect([NONE, REBALANCE_IN_PROGRESS], where).toContain(error)
      expect(await client.commit('orders', i, 1), where).toBe(NONE)
    }
    if (error !== NONE) continue
    // Who goes on reads what it was told, and so do the others.
    if (told.has(former)) expect(assigned(await client.sync()), where).toEqual(told.get(former))
  }
  for (const client of here) {
    if ((await client.heartbeat()) !== KAFKA_ERRORS.UNKNOWN_MEMBER_ID) continue
    client.memberId = ''
  }
  const all = (await formed(here)).flat()
  expect(all.sort(), where).toEqual(PARTITIONS)
}

async function joined(clients: readonly ModernClient[]): Promise<void> {
  for (let count = 1; count <= clients.length; count++) {
    for (let round = 0; round < 3; round++) {
      for (const client of clients.slice(0, count)) {
        await client.beat()
        disjoint(clients, 'before the end')
      }
    }
  }
  await clients[0]?.beat({ memberEpoch: -1 })
}

function disjoint(clients: readonly ModernClient[], where: string): void {
  const all = clients.flatMap(({ partitions }) => partitions)
  expect(new Set(all).size, where).toBe(all.length)
}

async function checkModern(machine: KafkaMachine, clients: readonly ModernClient[], where: string) {
  const here = moved(clients, machine.world)
  for (let round = 0; round < 5; round++) {
    for (const client of here) {
      const { errorCode } = await client.beat(
        client.memberEpoch === 0 ? {} : { rebalanceTimeoutMs: 60_000, subscribedTopicNames: ['orders'] },
      )
      // Nobody who was told an epoch is fenced by the end of the process, but the one that was leaving.
      if (errorCode !== KAFKA_ERRORS.NONE) {
        expect([errorCode, client], where).toEqual([KAFKA_ERRORS.UNKNOWN_MEMBER_ID, here[0]])
        Object.assign(client, { memberEpoch: 0, owned: [] })
      }
      disjoint(here, where)
    }
  }
  expect(here.flatMap(({ partitions }) => partitions).sort(), where).toEqual(PARTITIONS)
  expect(machine.world.broker.parts.groups.modern('g')?.state, where).toBe('Stable')
}

describe.each(['kill', 'power loss'] as const)(
  'a process that ends anywhere, by %s',
  { timeout: 120_000 },
  (way) => {
    it('classic members go on where they were told to, and in no other place', async () => {
      const start = ({ world }: KafkaMachine): ClassicState => ({
        clients: Array.from({ length: 3 }, () => new GroupClient(world)),
        told: new Map(),
      })
      await endedAnywhere(way, start, form, checkClassic)
    })

    it('modern members go on where they were told to, and no partition has two of them', async () => {
      const start = ({ world }: KafkaMachine) => Array.from({ length: 3 }, () => new ModernClient(world))
      await endedAnywhere(way, start, joined, checkModern)
    })
  },
)
