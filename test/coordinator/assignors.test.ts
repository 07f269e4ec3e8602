import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assign, type Subscriber, type TopicPartition } from '../../src/coordinator/assignors.ts'

type Strategy = Parameters<typeof assign>[0]
type Assigned = ReadonlyMap<string, readonly TopicPartition[]>

const NOTHING: Assigned = new Map()

/** Members as `{ id: 'topic topic' }`. */
function group(subscriptions: Record<string, string>): Subscriber[] {
  return Object.entries(subscriptions).map(([id, topics]) => ({
    id,
    topics: new Set(topics === '' ? [] : topics.split(' ')),
  }))
}

/** An assignment as `{ id: 't0/0 t0/1' }`. */
function show(assigned: Assigned): Record<string, string> {
  const text = (list: readonly TopicPartition[]): string =>
    list.map((p) => `${p.topic}/${p.partition}`).join(' ')
  return Object.fromEntries([...assigned].map(([id, list]) => [id, text(list)]))
}

function held(assignment: Record<string, string>): Assigned {
  return new Map(
    Object.entries(assignment).map(([id, text]) => {
      const partitions = text.split(' ').filter((name) => name !== '')
      return [
        id,
        partitions.map((name) => ({
          topic: name.split('/')[0] as string,
          partition: Number(name.split('/')[1]),
        })),
      ]
    }),
  )
}

function run(
  strategy: Strategy,
  subscriptions: Record<string, string>,
  counts: Record<string, number>,
  previous: Assigned = NOTHING,
): Record<string, string> {
  return show(assign(strategy, group(subscriptions), new Map(Object.entries(counts)), previous))
}

function loads(assigned: Assigned): number[] {
  return [...assigned.values()].map((list) => list.length)
}

/** Partitions that somebody held and now somebody else holds. */
function moves(before: Assigned, after: Assigned): number {
  const owners = new Map<string, string>()
  for (const [id, list] of after) for (const p of list) owners.set(`${p.topic}/${p.partition}`, id)
  let moved = 0
  for (const [id, list] of before) {
    for (const p of list) {
      const owner = owners.get(`${p.topic}/${p.partition}`)
      if (owner !== undefined && owner !== id) moved++
    }
  }
  return moved
}

describe('range', () => {
  it('gives runs of neighbours, one more to the first ones (Kafka: two topics of three, two members)', () => {
    expect(run('range', { c0: 't0 t1', c1: 't0 t1' }, { t0: 3, t1: 3 })).toEqual({
      c0: 't0/0 t0/1 t1/0 t1/1',
      c1: 't0/2 t1/2',
    })
  })

  it('counts only the subscribers of each topic', () => {
    expect(run('range', { a: 't0', b: 't0 t1', c: 't1' }, { t0: 4, t1: 3 })).toEqual({
      a: 't0/0 t0/1',
      b: 't0/2 t0/3 t1/0 t1/1',
      c: 't1/2',
    })
  })

  it('puts equally numbered partitions of topics of the same size together', () => {
    expect(run('range', { a: 'x y', b: 'x y', c: 'x y' }, { x: 3, y: 3 })).toEqual({
      a: 'x/0 y/0',
      b: 'x/1 y/1',
      c: 'x/2 y/2',
    })
  })
})

describe('round-robin', () => {
  it('deals all partitions of all topics in turn (Kafka: two topics of three, two members)', () => {
    expect(run('round-robin', { c0: 't0 t1', c1: 't0 t1' }, { t0: 3, t1: 3 })).toEqual({
      c0: 't0/0 t0/2 t1/1',
      c1: 't0/1 t1/0 t1/2',
    })
  })

  it('passes over who does not subscribe (Kafka: topics of one, two and three, three members)', () => {
    expect(run('round-robin', { c0: 't0', c1: 't0 t1', c2: 't0 t1 t2' }, { t0: 1, t1: 2, t2: 3 })).toEqual({
      c0: 't0/0',
      c1: 't1/0',
      c2: 't1/1 t2/0 t2/1 t2/2',
    })
  })
})

describe('range and round-robin', () => {
  it('answer what kafka-clients 3.9.0 answers for 500 random groups', () => {
    let seed = 1
    const next = (below: number): number => {
      seed = (seed * 48271) % 2147483647
      return seed % below
    }
    let digest = 0
    const text = (assigned: Assigned): string =>
      [...assigned].map(([id, list]) => `${id}:${list.map((p) => p.topic + p.partition).join(',')}`).join(' ')
    for (let round = 0; round < 500; round++) {
      const memberCount = 1 + next(5)
      const topics = Array.from({ length: 1 + next(4) }, (_, i) => `t${i}`)
      const counts = new Map(topics.map((topic) => [topic, 1 + next(7)]))
      const members = Array.from({ length: memberCount }, (_, i) => ({
        id: `m${i}`,
        topics: new Set(topics.filter(() => next(3) !== 0)),
      }))
      const range = text(assign('range', members, counts, NOTHING))
      const roundRobin = text(assign('round-robin', members, counts, NOTHING))
      // As Java's String.hashCode, over both answers.
      for (const char of `${range}|${roundRobin}\n`) digest = (Math.imul(digest, 31) + char.charCodeAt(0)) | 0
    }
    expect(digest).toBe(80826180)
  })
})

describe('sticky', () => {
  it('spreads evenly when nobody held anything', () => {
    expect(run('sticky', { a: 't', b: 't', c: 't' }, { t: 7 })).toEqual({
      a: 't/0 t/3 t/6',
      b: 't/1 t/4',
      c: 't/2 t/5',
    })
  })

  it('takes from the most loaded ones only what a new member needs', () => {
    const before = held({ a: 't/0 t/1 t/2', b: 't/3 t/4 t/5' })
    expect(run('sticky', { a: 't', b: 't', c: 't' }, { t: 6 }, before)).toEqual({
      a: 't/0 t/1',
      b: 't/3 t/4',
      c: 't/2 t/5',
    })
  })

  it('gives what a member that left held to the others, and moves nothing else', () => {
    const before = held({ a: 't/0 t/1', b: 't/2 t/3', c: 't/4 t/5' })
    expect(run('sticky', { a: 't', c: 't' }, { t: 6 }, before)).toEqual({
      a: 't/0 t/1 t/2',
      c: 't/3 t/4 t/5',
    })
  })

  it('gives new partitions to the least loaded', () => {
    const before = held({ a: 't/0 t/1', b: 't/2' })
    expect(run('sticky', { a: 't', b: 't' }, { t: 5 }, before)).toEqual({ a: 't/0 t/1 t/4', b: 't/2 t/3' })
  })

  it('stops a member from holding what it no longer subscribes to or what is gone', () => {
    const before = held({ a: 't/0 u/0 gone/0 t/9', b: 'u/1' })
    expect(run('sticky', { a: 't', b: 't u' }, { t: 1, u: 2 }, before)).toEqual({ a: 't/0', b: 'u/0 u/1' })
  })

  it('lets the first of two that claim a partition keep it', () => {
    const before = held({ b: 't/0 t/1', a: 't/0' })
    expect(run('sticky', { b: 't', a: 't' }, { t: 2 }, before)).toEqual({ a: 't/0', b: 't/1' })
  })

  it('relieves a member over several hands where the idle one shares no topic with it', () => {
    const before = held({ a: 'x/0 x/1 x/2', b: 'y/0' })
    expect(run('sticky', { a: 'x', b: 'x y', c: 'y' }, { x: 3, y: 1 }, before)).toEqual({
      a: 'x/0 x/1',
      b: 'x/2',
      c: 'y/0',
    })
  })

  it('hands on what was filled in, rather than what was held before', () => {
    const before = held({ a: 'x/2 x/3', b: 'x/0' })
    // `b` first gets x/1, then all of y: of the two in x it passes on the one it never held.
    expect(run('sticky', { a: 'x', b: 'x y' }, { x: 4, y: 3 }, before)).toEqual({
      a: 'x/1 x/2 x/3',
      b: 'x/0 y/0 y/1 y/2',
    })
  })
})

const STRATEGIES: Strategy[] = ['range', 'round-robin', 'sticky']

describe.each(STRATEGIES)('%s', (strategy) => {
  it('leaves members without a partition when there are too few', () => {
    const assigned = assign(strategy, group({ a: 't', b: 't', c: 't' }), new Map([['t', 2]]), NOTHING)
    expect(show(assigned)).toEqual({ a: 't/0', b: 't/1', c: '' })
  })

  it('assigns no topic that nobody subscribes to, and nothing to nobody', () => {
    expect(run(strategy, { a: 't missing', b: '' }, { t: 1, lonely: 3 })).toEqual({ a: 't/0', b: '' })
    expect(run(strategy, {}, { t: 1 })).toEqual({})
  })

  it('answers the same whatever the order of members and topics', () => {
    const members = group({ b: 'x y', a: 'x', c: 'y x' })
    const one = assign(strategy, members, new Map(Object.entries({ y: 4, x: 5 })), NOTHING)
    const other = assign(strategy, [...members].reverse(), new Map(Object.entries({ x: 5, y: 4 })), NOTHING)
    expect([...other]).toEqual([...one])
    expect([...one.keys()]).toEqual(['a', 'b', 'c'])
  })
})

const TOPICS = ['t0', 't1', 't2', 't3']
const someCounts = fc
  .array(fc.nat(7), { minLength: 1, maxLength: TOPICS.length })
  .map((counts) => new Map(counts.map((count, i) => [TOPICS[i] as string, count])))
const someMembers = fc
  .array(fc.subarray(TOPICS), { minLength: 1, maxLength: 6 })
  .map((topics) => topics.map((each, i) => ({ id: `m${i}`, topics: new Set(each) })))
const equalMembers = fc
  .uniqueArray(fc.nat(9), { minLength: 1, maxLength: 7 })
  .map((ids) => ids.map((id) => ({ id: `m${id}`, topics: new Set(TOPICS) })))
/** Anything that members may claim to have held, also what cannot be. */
const someHistory = fc
  .array(fc.tuple(fc.nat(7), fc.constantFrom(...TOPICS, 'gone'), fc.nat(8)), { maxLength: 25 })
  .map((claims) => {
    const history = new Map<string, TopicPartition[]>()
    for (const [id, topic, partition] of claims) {
      history.set(`m${id}`, [...(history.get(`m${id}`) ?? []), { topic, partition }])
    }
    return history
  })

describe('whatever the group', () => {
  it.each(STRATEGIES)('%s gives every partition once, to a subscriber, where there is one', (strategy) => {
    fc.assert(
      fc.property(someMembers, someCounts, someHistory, (members, counts, history) => {
        const assigned = assign(strategy, members, counts, history)
        expect([...assigned.keys()]).toEqual(members.map(({ id }) => id).sort())
        const given: string[] = []
        for (const member of members) {
          for (const { topic, partition } of assigned.get(member.id) as TopicPartition[]) {
            expect(member.topics.has(topic)).toBe(true)
            given.push(`${topic}/${partition}`)
          }
        }
        const wanted = [...counts]
          .filter(([topic]) => members.some((member) => member.topics.has(topic)))
          .flatMap(([topic, count]) =>
            Array.from({ length: count }, (_, partition) => `${topic}/${partition}`),
          )
        expect(given.sort()).toEqual(wanted.sort())
      }),
      { numRuns: 300 },
    )
  })

  it.each(STRATEGIES)(
    '%s is even within one (range: for each topic) where all subscribe to the same',
    (strategy) => {
      fc.assert(
        fc.property(equalMembers, someCounts, someHistory, (members, counts, history) => {
          const assigned = assign(strategy, members, counts, history)
          const spread = (sizes: readonly number[]): number => Math.max(...sizes) - Math.min(...sizes)
          if (strategy !== 'range') expect(spread(loads(assigned))).toBeLessThanOrEqual(1)
          for (const topic of strategy === 'range' ? counts.keys() : []) {
            const sizes = [...assigned.values()].map((list) => list.filter((p) => p.topic === topic).length)
            expect(spread(sizes)).toBeLessThanOrEqual(1)
          }
        }),
        { numRuns: 300 },
      )
    },
  )

  it('sticky moves the fewest partitions that evenness allows, where all subscribe to the same', () => {
    fc.assert(
      fc.property(equalMembers, equalMembers, someCounts, (before, after, counts) => {
        const old = assign('sticky', before, counts, NOTHING)
        const assigned = assign('sticky', after, counts, old)
        // Who stays keeps all, up to its share; the larger shares go to whom they spare a move.
        const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
        const floor = Math.floor(total / after.length)
        let larger = total % after.length
        let needed = 0
        for (const { id } of after) {
          const excess = (old.get(id)?.length ?? 0) - floor
          if (excess <= 0) continue
          needed += excess
          if (larger-- > 0) needed--
        }
        const left = before.filter(({ id }) => !after.some((member) => member.id === id))
        for (const { id } of left) needed += old.get(id)?.length ?? 0
        expect(moves(old, assigned)).toBe(needed)
      }),
      { numRuns: 300 },
    )
  })

  it('sticky is as even as any assignment can be, found by trying them all', () => {
    const small = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(someMembers, small, someHistory, (all, sizes, history) => {
        const members = all.slice(0, 3)
        const counts = new Map(sizes.map((count, i) => [TOPICS[i] as string, count]))
        const squares = (each: readonly number[]): number => each.reduce((sum, n) => sum + n * n, 0)
        const choices = [...counts].flatMap(([topic, count]) => {
          const able = members.flatMap((member, i) => (member.topics.has(topic) ? [i] : []))
          return able.length === 0 ? [] : Array.from({ length: count }, () => able)
        })
        const best = (index: number, current: number[]): number =>
          choices[index] === undefined
            ? squares(current)
            : Math.min(
                ...choices[index].map((who) =>
                  best(
                    index + 1,
                    current.map((n, i) => (i === who ? n + 1 : n)),
                  ),
                ),
              )
        const assigned = assign('sticky', members, counts, history)
        expect(squares(loads(assigned))).toBe(
          best(
            0,
            members.map(() => 0),
          ),
        )
      }),
      { numRuns: 60 },
    )
  })

  it('sticky changes nothing when asked again', () => {
    fc.assert(
      fc.property(someMembers, someCounts, someHistory, (members, counts, history) => {
        const first = assign('sticky', members, counts, history)
        expect([...assign('sticky', members, counts, first)]).toEqual([...first])
      }),
    )
  })
})
