/** A group of subscribers and members of the protocol through the end of the process: the members stay, subscribers come again. */
import { expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { fileDisk } from '../support/disks.ts'
import type { KafkaWorld } from '../support/kafka.ts'
import { bootKafka } from '../support/kafka-disk.ts'
import { ModernClient } from '../support/modern-client.ts'
import { moved } from './restart-kit.ts'

const { NONE } = KAFKA_ERRORS

async function subscribed(world: KafkaWorld, seen: string[]) {
  return world.broker.topic('orders').subscribe(({ partition }) => void seen.push(String(partition)), {
    id: 'here',
    group: 'g',
    assignment: 'range',
    from: 'earliest',
  })
}

async function joint() {
  const disk = fileDisk()
  const { world, crash } = await bootKafka(disk)
  await world.broker.createTopic('orders', { partitions: 4 })
  await subscribed(world, [])
  const member = new ModernClient(world)
  await member.beat()
  await world.clock.settle()
  await member.beat()
  expect(member.partitions).toHaveLength(2)
  crash()
  const after = (await bootKafka(disk)).world
  const [client] = moved([member], after) as [ModernClient]
  return { before: [...member.partitions], world: after, client }
}

it('the member goes on, and is given what the subscriber had, who may not come back', async () => {
  const { before, client } = await joint()
  expect(await client.commit(1)).toBe(NONE)
  expect(await client.beat()).toMatchObject({ errorCode: NONE })
  expect(client.partitions).toHaveLength(4)
  expect(client.partitions).toEqual(expect.arrayContaining(before))
})

it('the subscriber is back first, and gets what the member does not have', async () => {
  const { before, world, client } = await joint()
  const seen: string[] = []
  await subscribed(world, seen)
  for (let p = 0; p < 4; p++) await world.broker.publish('orders', p, { partition: p })
  await world.settle()
  expect(seen.filter((each) => before.includes(Number(each)))).toEqual([])
  for (let round = 0; round < 3; round++) {
    expect((await client.beat()).errorCode).toBe(NONE)
    await world.settle()
  }
  expect(client.partitions).toHaveLength(2)
  const here = world.broker.describeGroup('g').cursors.filter(({ owner }) => owner === 'here')
  const all = [...here.map(({ partition }) => partition), ...client.partitions]
  expect(all.sort()).toEqual([0, 1, 2, 3])
  // Each record that is not the member's has been here.
  expect(seen.map(Number).sort()).toEqual(here.map(({ partition }) => partition).sort())
})

it('a member that does not come back leaves all to the subscriber, after a session', async () => {
  const { world } = await joint()
  const seen: string[] = []
  await subscribed(world, seen)
  for (let p = 0; p < 4; p++) await world.broker.publish('orders', p, { partition: p })
  await world.clock.advance(45_000)
  await world.settle()
  expect(seen.sort()).toEqual(['0', '1', '2', '3'])
  const stored = [...world.broker.parts.engine.meta.scan('group')]
  expect(stored).toEqual([])
})
