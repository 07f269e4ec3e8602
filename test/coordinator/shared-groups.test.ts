/** Shared groups: every record to exactly one member, a busy member never stalls the others. */
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { codeOf, Hands, upTo, World } from '../support/world.ts'

const group = 'shippers'

describe('a shared group', () => {
  it('hands each record to exactly one member, in turn', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: string[] = []
    for (const id of ['w1', 'w2'])
      await topic.subscribe((d) => void seen.push(`${id}:${d.value}`), { id, group })
    for (const i of upTo(4)) await topic.publish(i)
    await settle()
    expect(seen).toEqual(['w1:0', 'w2:1', 'w1:2', 'w2:3'])
  })

  it('goes on with the free members while one is busy', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: number[] = []
    await topic.subscribe(() => new Promise(() => {}), { id: 'stuck', group })
    await topic.subscribe((d) => void seen.push(d.value), { id: 'quick', group })
    for (const i of upTo(10)) await topic.publish(i)
    await settle()
    expect(seen).toEqual(upTo(10).slice(1))
  })

  it('gives what a member leaves behind to another, the attempt not counted', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const hands = new Hands()
    const first = await topic.subscribe(hands.take, { id: 'w1', group, ack: 'manual' })
    await topic.publish(7)
    await settle()
    const seen: string[] = []
    await topic.subscribe((d) => void seen.push(`${d.value} attempt ${d.attempt} ${d.redelivered}`), {
      id: 'w2',
      group,
    })
    await first.close({ drainMs: 0 })
    await settle()
    expect(seen).toEqual(['7 attempt 1 true'])
    expect(hands.last.ack()).toBe(false)
  })

  it('keeps its place while it is empty, and goes on with its next member', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const first = await topic.subscribe(() => {}, { group })
    await topic.publish(0)
    await settle()
    await first.close()
    await topic.publish(1)
    const seen: number[] = []
    await topic.subscribe((d) => void seen.push(d.value), { group, from: 'latest' })
    await settle()
    expect(seen).toEqual([1])
  })

  it('is broker-wide: members of other topics share its settings, each reads its own', async () => {
    const { broker, settle } = new World()
    const seen: string[] = []
    for (const name of ['orders', 'returns']) {
      const topic = await broker.createTopic(name)
      await topic.subscribe((d) => void seen.push(`${d.topic}:${String(d.value)}`), { id: name, group })
    }
    for (const i of upTo(3)) {
      await broker.publish('orders', i)
      await broker.publish('returns', i)
    }
    await settle()
    expect(seen.sort()).toEqual(['orders:0', 'orders:1', 'orders:2', 'returns:0', 'returns:1', 'returns:2'])
    expect(broker.describeGroup(group).members.map(({ id }) => id)).toEqual(['orders', 'returns'])
  })

  it('does not stall one topic by members that are busy with another', async () => {
    const { broker, settle } = new World()
    const [orders, returns] = [await broker.createTopic('orders'), await broker.createTopic('returns')]
    const seen: unknown[] = []
    await orders.subscribe(() => new Promise(() => {}), { id: 'w1', group })
    await returns.subscribe((d) => void seen.push(d.value), { id: 'w2', group })
    for (const i of upTo(3)) {
      await orders.publish(i)
      await returns.publish(i)
    }
    await settle()
    expect(seen).toEqual(upTo(3))
  })
})

describe("a group's settings", () => {
  it('are fixed by its first member; later ones omit or match them', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await topic.subscribe(() => {}, { group, order: 'none', retry: { attempts: 3 }, overflow: 'reject' })
    await topic.subscribe(() => {}, { group })
    await topic.subscribe(() => {}, { group, order: 'none', retry: { attempts: 3 } })
    for (const other of [
      { order: 'key' },
      { retry: { attempts: 4 } },
      { overflow: 'wait' },
      { assignment: 'range' },
      { guarantee: 'at-most-once' },
      { deadLetter: false },
      { graceMs: 1 },
      { from: 'earliest' },
      { strategy: 'weighted' },
      { strategy: { select: () => 'hold' } },
    ] as const) {
      expect(
        await codeOf(topic.subscribe(() => {}, { group, ...(other as SubscribeOptions) })),
        JSON.stringify(other),
      ).toBe('INCONSISTENT_GROUP')
    }
    expect(broker.describeGroup(group).members).toHaveLength(3)
  })

  it('of an empty group may be chosen anew, another kind included', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const first = await topic.subscribe(() => {}, { group })
    await topic.publish(0)
    await settle()
    await first.close()
    const seen: number[] = []
    await topic.publish(1)
    await topic.subscribe((d) => void seen.push(d.value), { group, assignment: 'range' })
    await settle()
    expect(seen).toEqual([1])
    expect(broker.describeGroup(group).kind).toBe('consumer')
  })

  it('of the member are its own', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await topic.subscribe(() => {}, { group, id: 'a', concurrency: 4, ack: 'manual', ackTimeoutMs: 5 })
    await topic.subscribe(() => {}, { group, id: 'b' })
    expect(broker.describeGroup(group).members.map(({ id }) => id)).toEqual(['a', 'b'])
  })
})

describe('names', () => {
  it('of members are unique within a group, and made up where they are left out', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    const first = await topic.subscribe(() => {}, { group, id: 'w1' })
    expect(await codeOf(topic.subscribe(() => {}, { group, id: 'w1' }))).toBe('CONSUMER_EXISTS')
    const [a, b] = [await topic.subscribe(() => {}, { group }), await topic.subscribe(() => {}, { group })]
    expect(new Set([first.id, a.id, b.id]).size).toBe(3)
    expect([first.group, a.group]).toEqual([group, group])
  })

  it('that file broadcast readers are refused for groups', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    expect(await codeOf(topic.subscribe(() => {}, { group: 'odradek.reader.alice' }))).toBe(
      'INVALID_ARGUMENT',
    )
  })

  it('of two members that join at the same time are both in', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await Promise.all(upTo(5).map((i) => topic.subscribe(() => {}, { group, id: `w${i}` })))
    expect(broker.describeGroup(group).members).toHaveLength(5)
    expect(broker.listGroups()).toEqual([group])
  })
})

describe('deleteGroup', () => {
  it('is what unsubscribe points to when it gets the name of a group', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await topic.subscribe(() => {}, { group, id: 'w1' })
    await expect(broker.unsubscribe('orders', group)).rejects.toMatchObject({
      code: 'UNKNOWN_CONSUMER',
      message: expect.stringContaining('deleteGroup("shippers")'),
    })
  })

  it('forgets an empty group and refuses others', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    const member = await topic.subscribe(() => {}, { group })
    expect(await codeOf(broker.deleteGroup(group))).toBe('GROUP_NOT_EMPTY')
    await member.close()
    await broker.deleteGroup(group)
    expect(broker.listGroups()).toEqual([])
    expect(await codeOf(broker.deleteGroup(group))).toBe('UNKNOWN_CONSUMER')
  })
})

describe('a delivery strategy', () => {
  it('of the user decides, and sees who is free, who is busy, and the attempt', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const asked: unknown[] = []
    const strategy = {
      select(
        record: { value: unknown },
        members: readonly { id: string }[],
        state: { all: readonly { id: string; free: boolean }[]; attempt: number },
      ) {
        asked.push([
          record.value,
          members.map(({ id }) => id),
          state.all.map(({ id, free }) => `${id} ${free}`),
          state.attempt,
        ])
        return members.at(-1) as never
      },
    }
    const seen: string[] = []
    await topic.subscribe((d) => void seen.push(`a${d.value}`), { id: 'a', group, strategy })
    await topic.subscribe(() => new Promise(() => {}), { id: 'b', group })
    await topic.publish(0)
    await topic.publish(1)
    await settle()
    expect(asked).toEqual([
      [0, ['a', 'b'], ['a true', 'b true'], 1],
      [1, ['a'], ['a true', 'b false'], 1],
    ])
    expect(seen).toEqual(['a1'])
  })

  it("that answers 'hold' or a busy member sets the record aside until a member has room", async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<string>('orders')
    const hands = new Hands()
    const seen: string[] = []
    const strategy = {
      select: (record: { value: unknown }, _: unknown, { all }: { all: readonly { id: string }[] }) =>
        all.find(({ id }) => id === String(record.value).charAt(0)) as never,
    }
    await topic.subscribe(hands.take, { id: 'a', group, strategy, ack: 'manual' })
    await topic.subscribe((d) => void seen.push(d.value), { id: 'b', group })
    for (const value of ['a1', 'a2', 'b1', 'b2']) await topic.publish(value)
    await settle()
    expect([hands.values, seen]).toEqual([['a1'], ['b1', 'b2']])
    hands.last.ack()
    await settle()
    expect(hands.values).toEqual(['a1', 'a2'])
  })

  it('that throws or answers nonsense is reported, and somebody free gets the record', async () => {
    const { broker, raised, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const answers = [
      () => {
        throw new Error('no idea')
      },
      () => ({ id: 'stranger' }),
    ]
    const seen: number[] = []
    const strategy = { select: () => (answers.shift() as () => never)() }
    await topic.subscribe((d) => void seen.push(d.value), { id: 'a', group, strategy })
    await topic.subscribe((d) => void seen.push(d.value), { id: 'b', group })
    await topic.publish(0)
    await topic.publish(1)
    await settle()
    expect(seen).toEqual([0, 1])
    expect(raised('error').map(({ error }) => error.message)).toEqual([
      'no idea',
      'the strategy of "shippers" chose somebody who is no member',
    ])
  })

  it('sticky-key keeps a key at one member while the members stay the same', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const owners = new Map<string, Set<string>>()
    const note = (id: string) => (d: Delivery<number>) => {
      const key = String(d.key)
      owners.set(key, (owners.get(key) ?? new Set()).add(id))
    }
    for (const id of ['a', 'b', 'c']) await topic.subscribe(note(id), { id, group, strategy: 'sticky-key' })
    for (const i of upTo(90)) await topic.publish(i, { key: `k${i % 30}` })
    await settle()
    expect([...owners.values()].every((members) => members.size === 1)).toBe(true)
    expect(new Set([...owners.values()].map((members) => [...members][0])).size).toBe(3)
  })

  it('weighted shares by weight', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const counts: Record<string, number> = { a: 0, b: 0 }
    for (const [id, weight] of [
      ['a', 3],
      ['b', 1],
    ] as const) {
      await topic.subscribe(
        () => {
          counts[id] = (counts[id] ?? 0) + 1
        },
        {
          id,
          group,
          strategy: 'weighted',
          weight,
        },
      )
    }
    for (const i of upTo(40)) await topic.publish(i)
    await settle()
    expect(counts).toEqual({ a: 30, b: 10 })
  })
})
