/**
 * A process that ends anywhere: each operation of the disk is the last one once. What a transaction wrote to several
 * partitions and the offset that it committed are there together or not at all, and what was answered is kept.
 */
import { describe, expect, it } from 'vitest'
import { GroupClient } from '../support/group-client.ts'
import { KafkaMachine } from '../support/kafka-machine.ts'
import { committedValues, type Protocol, TransactionalProducer } from '../support/kafka-transactions.ts'

const PLACES = [
  ['orders', 0],
  ['orders', 1],
  ['audit', 0],
] as const

/** What the client knows: names of transactions that were begun, and how they were answered. */
interface Told {
  readonly committed: string[]
  readonly aborted: string[]
  /** Asked to commit, without an answer. */
  asked: string | null
}

async function transact(
  machine: KafkaMachine,
  producer: TransactionalProducer,
  name: string,
  commit: boolean,
  told: Told,
): Promise<void> {
  for (const [topic, partition] of PLACES) await producer.send(topic, [name, `${name}'`], partition)
  await producer.sendOffset('g', 'orders', Number(name))
  if (commit) told.asked = name
  expect(await producer.end(commit)).toBe('NONE')
  told.asked = null
  if (commit) told.committed.push(name)
  else told.aborted.push(name)
  expect(machine.isHalted).toBe(false)
}

async function program(machine: KafkaMachine, protocol: Protocol, told: Told): Promise<void> {
  const producer = new TransactionalProducer(machine.world, 't', { protocol })
  await producer.init()
  await transact(machine, producer, '1', true, told)
  await transact(machine, producer, '2', false, told)
  await transact(machine, producer, '3', true, told)
  await producer.send('orders', ['open'])
}

async function prepared(): Promise<KafkaMachine> {
  const machine = await KafkaMachine.open()
  await machine.world.broker.createTopic('orders', { partitions: 2 })
  await machine.world.broker.createTopic('audit')
  return machine
}

/** Names of transactions that a partition shows. */
async function shown(machine: KafkaMachine, [topic, partition]: (typeof PLACES)[number]): Promise<string[]> {
  const values = await committedValues(machine.world, topic, partition)
  const names = values.filter((value) => !value.endsWith("'"))
  expect(values).toEqual(names.flatMap((name) => [name, `${name}'`]))
  return names
}

async function check(machine: KafkaMachine, told: Told, where: string): Promise<void> {
  expect([...machine.transactions.all()].map(([, { phase }]) => phase).filter(isPrepared), where).toEqual([])
  const producer = new TransactionalProducer(machine.world, 't')
  expect(await producer.init(), where).toBe('NONE')
  const names = await shown(machine, PLACES[0])
  for (const place of PLACES) expect(await shown(machine, place), where).toEqual(names)
  const certain = told.committed
  const possible = told.asked === null ? [certain] : [certain, [...certain, told.asked]]
  expect(possible, where).toContainEqual(names)
  const offset = (await new GroupClient(machine.world).committed('orders', 0)).committedOffset
  expect(offset, where).toBe(Number(names.at(-1) ?? -1))
  // And everything goes on.
  await transact(machine, producer, '9', true, { committed: [], aborted: [], asked: null })
  for (const place of PLACES) expect(await shown(machine, place), where).toEqual([...names, '9'])
}

function isPrepared(phase: string): boolean {
  return phase.startsWith('Prepare')
}

async function operationsOf(protocol: Protocol): Promise<number> {
  const machine = await prepared()
  const before = machine.operations
  await program(machine, protocol, { committed: [], aborted: [], asked: null })
  return machine.operations - before
}

describe.each(['v1', 'v2'] as const)(
  'a process that ends anywhere, transactions %s',
  { timeout: 120_000 },
  (protocol) => {
    it.each(['kill', 'power loss'] as const)(
      '%s: a transaction is there as a whole or not at all',
      async (way) => {
        const operations = await operationsOf(protocol)
        expect(operations).toBeGreaterThan(30)
        for (let last = 1; last <= operations; last++) {
          const machine = await prepared()
          machine.haltIn = last
          machine.haltHow = last % 2 === 0 ? 'before' : 'after'
          const told: Told = { committed: [], aborted: [], asked: null }
          await machine.until(program(machine, protocol, told))
          if (way === 'kill') await machine.kill()
          else await machine.powerLoss(last)
          await check(machine, told, `${way} at operation ${last}, seed ${last}`)
        }
      },
    )
  },
)
