import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeStrategy } from '../../src/core/strategies.ts'
import { OdradekError } from '../../src/model/errors.ts'
import type { DeliveryStrategy, MemberView, StrategyName } from '../../src/model/options.ts'
import { type Key, type LogRecord, NO_HEADERS } from '../../src/model/record.ts'

interface TestMember extends MemberView {
  inFlight: number
}

function member(
  id: string,
  options: { weight?: number; inFlight?: number; concurrency?: number } = {},
): TestMember {
  return {
    id,
    weight: options.weight ?? 1,
    inFlight: options.inFlight ?? 0,
    concurrency: options.concurrency ?? 1,
    get free() {
      return this.inFlight < this.concurrency
    },
  }
}

function record(key: Key | null = null): LogRecord {
  return { topic: 't', partition: 0, offset: 0, timestamp: 0, key, value: null, headers: NO_HEADERS, id: 'x' }
}

/** Whom the strategy chooses for each key, all of `free` being able to take it. */
function choose(
  strategy: DeliveryStrategy,
  all: readonly MemberView[],
  keys: readonly (Key | null)[],
  free = all,
) {
  return keys.map((key) => {
    const chosen = strategy.select(record(key), free, { all, attempt: 1 })
    return chosen === 'hold' ? 'hold' : chosen.id
  })
}

function times(count: number): null[] {
  return Array.from({ length: count }, () => null)
}

function members(...ids: string[]): TestMember[] {
  return ids.map((id) => member(id))
}

function tally(ids: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const id of ids) counts[id] = (counts[id] ?? 0) + 1
  return counts
}

const NAMES: StrategyName[] = ['round-robin', 'least-in-flight', 'weighted', 'sticky-key']

describe('delivery strategies', () => {
  it.each(NAMES)('%s has state of its own for every group', (name) => {
    const all = members('a', 'b', 'c')
    const first = makeStrategy(name)
    expect(makeStrategy(name)).not.toBe(first)
    expect(choose(first, all, times(2))).toEqual(['a', 'b'])
    expect(choose(makeStrategy(name), all, times(1))).toEqual(['a'])
  })

  it.each(NAMES)('%s gives keyless records to equal idle members in turn', (name) => {
    expect(choose(makeStrategy(name), members('a', 'b', 'c'), times(7))).toEqual([
      'a',
      'b',
      'c',
      'a',
      'b',
      'c',
      'a',
    ])
  })

  it('takes an object with a select method as it is', () => {
    const own: DeliveryStrategy = { select: () => 'hold' }
    expect(makeStrategy(own)).toBe(own)
  })

  it.each(['fastest', 'toString', '', null, undefined, 7, {}])('refuses %j, naming what there is', (name) => {
    const make = (): DeliveryStrategy => makeStrategy(name as unknown as StrategyName)
    expect(make).toThrow(OdradekError)
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    expect(make).toThrow('round-robin, least-in-flight, weighted, sticky-key')
  })

  it('holds that who is free is in the group', () => {
    const act = (): unknown => choose(makeStrategy('round-robin'), members('a', 'b'), [null], members('x'))
    expect(act).toThrow('broken invariant')
  })
})

describe('round-robin', () => {
  it('passes over who cannot take the record, without losing the turn of the others', () => {
    const strategy = makeStrategy('round-robin')
    const all = members('a', 'b', 'c')
    const [a, b, c] = all as [TestMember, TestMember, TestMember]
    expect(choose(strategy, all, [null], [a, b, c])).toEqual(['a'])
    expect(choose(strategy, all, [null], [a, c])).toEqual(['c'])
    expect(choose(strategy, all, [null], [a, b])).toEqual(['a'])
    expect(choose(strategy, all, [null], [c])).toEqual(['c'])
    expect(choose(strategy, all, [null], [b, c])).toEqual(['b'])
  })

  it('goes on with the next one when the last one leaves', () => {
    const strategy = makeStrategy('round-robin')
    expect(choose(strategy, members('a', 'b', 'c', 'd'), times(2))).toEqual(['a', 'b'])
    expect(choose(strategy, members('a', 'c', 'd'), times(3))).toEqual(['c', 'd', 'a'])
    expect(choose(strategy, members('c', 'd'), times(2))).toEqual(['c', 'd'])
    expect(choose(strategy, members('c'), times(2))).toEqual(['c', 'c'])
  })

  it('goes on after the last one when others leave or join before it', () => {
    const strategy = makeStrategy('round-robin')
    expect(choose(strategy, members('a', 'b', 'c', 'd'), times(3))).toEqual(['a', 'b', 'c'])
    expect(choose(strategy, members('c', 'd'), times(1))).toEqual(['d'])
    expect(choose(strategy, members('x', 'y', 'c', 'd'), times(2))).toEqual(['x', 'y'])
  })

  it('gives every free member the same number, give or take one, whoever joins and leaves between', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.nat(40)), { maxLength: 8 }),
        (phases) => {
          const strategy = makeStrategy('round-robin')
          for (const [size, records] of phases) {
            const all = members(...Array.from({ length: size }, (_, i) => `m${i}`))
            const counts = Object.values({
              ...Object.fromEntries(all.map(({ id }) => [id, 0])),
              ...tally(choose(strategy, all, times(records))),
            })
            expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
          }
        },
      ),
    )
  })
})

describe('least-in-flight', () => {
  it('chooses the one with the fewest in hand', () => {
    const all = [member('a', { inFlight: 3 }), member('b', { inFlight: 1 }), member('c', { inFlight: 2 })]
    expect(choose(makeStrategy('least-in-flight'), all, times(2))).toEqual(['b', 'b'])
  })

  it('takes turns among those that tie', () => {
    const all = [member('a', { inFlight: 1 }), member('b', { inFlight: 2 }), member('c', { inFlight: 1 })]
    expect(choose(makeStrategy('least-in-flight'), all, times(4))).toEqual(['a', 'c', 'a', 'c'])
  })

  it('does not choose an idler one that cannot take the record', () => {
    const [a, b] = [member('a', { inFlight: 0 }), member('b', { inFlight: 5 })]
    expect(choose(makeStrategy('least-in-flight'), [a, b], [null], [b])).toEqual(['b'])
  })

  it('levels members of different speed', () => {
    const strategy = makeStrategy('least-in-flight')
    const all = [member('slow', { concurrency: 100 }), member('fast', { concurrency: 100 })] as const
    const chosen: string[] = []
    for (let i = 0; i < 100; i++) {
      const [id] = choose(strategy, all, [null]) as [string]
      chosen.push(id)
      for (const each of all) if (each.id === id) each.inFlight++
      // The fast one finishes a record each turn, the slow one every fourth.
      if (all[1].inFlight > 0) all[1].inFlight--
      if (i % 4 === 3 && all[0].inFlight > 0) all[0].inFlight--
    }
    const counts = tally(chosen)
    expect(counts.fast).toBeGreaterThan(2 * (counts.slow ?? 100))
  })
})

describe('weighted', () => {
  it('spreads in proportion to the weights, evenly over time', () => {
    const all = [member('a', { weight: 5 }), member('b', { weight: 1 }), member('c', { weight: 1 })]
    const strategy = makeStrategy('weighted')
    expect(choose(strategy, all, times(7)).join('')).toBe('aabacaa')
    expect(tally(choose(strategy, all, times(700)))).toEqual({ a: 500, b: 100, c: 100 })
  })

  it('shares among the free ones while another is busy, and owes it nothing afterwards', () => {
    const all = [member('a', { weight: 2 }), member('b', { weight: 1 }), member('c', { weight: 1 })]
    const strategy = makeStrategy('weighted')
    expect(tally(choose(strategy, all, times(20), all.slice(1)))).toEqual({ b: 10, c: 10 })
    expect(tally(choose(strategy, all, times(20)))).toEqual({ a: 10, b: 5, c: 5 })
  })

  it('survives members that come and go', () => {
    const strategy = makeStrategy('weighted')
    for (let round = 0; round < 50; round++) {
      const all = [member('stays', { weight: 3 }), member(`guest-${round}`)]
      expect(tally(choose(strategy, all, times(40)))).toEqual({ stays: 30, [`guest-${round}`]: 10 })
    }
  })

  it('starts a member anew that was away while others came', () => {
    const strategy = makeStrategy('weighted')
    const others = members('b', 'c', 'd', 'e', 'f')
    // The first one chosen is in debt to all others when it leaves.
    expect(choose(strategy, [member('a'), ...others], [null])).toEqual(['a'])
    choose(strategy, [...others, member('g')], times(6))
    const [newcomer, ...rest] = [member('a'), ...others, member('g')]
    expect(choose(strategy, [newcomer as MemberView, ...rest], times(6))).toEqual([
      'b',
      'c',
      'd',
      'e',
      'f',
      'a',
    ])
  })
})

describe('sticky-key', () => {
  const keys = Array.from({ length: 3_000 }, (_, i) => `customer-${i}`)

  it('gives a key to the same member again, whatever else is delivered', () => {
    const all = members('a', 'b', 'c', 'd')
    const strategy = makeStrategy('sticky-key')
    const first = choose(strategy, all, keys)
    choose(strategy, all, times(5))
    expect(choose(strategy, all, keys)).toEqual(first)
    expect(choose(makeStrategy('sticky-key'), [...all].reverse(), keys)).toEqual(first)
  })

  it('knows a string and its bytes as one key', () => {
    const all = members('a', 'b', 'c', 'd')
    const strategy = makeStrategy('sticky-key')
    const bytes = keys.map((key) => new TextEncoder().encode(key))
    expect(choose(strategy, all, bytes)).toEqual(choose(strategy, all, keys))
  })

  it('spreads keys evenly over members', () => {
    const counts = tally(choose(makeStrategy('sticky-key'), members('w1', 'w2', 'w3', 'w4', 'w5'), keys))
    expect(Object.keys(counts)).toHaveLength(5)
    for (const count of Object.values(counts)) expect(Math.abs(count - 600)).toBeLessThan(80)
  })

  it('moves only the keys of a member that leaves, and to all the others', () => {
    const strategy = makeStrategy('sticky-key')
    const before = choose(strategy, members('w1', 'w2', 'w3', 'w4'), keys)
    const after = choose(strategy, members('w1', 'w2', 'w4'), keys)
    const heirs = keys.flatMap((_, i) => {
      if (before[i] === 'w3') return [after[i] as string]
      expect(after[i]).toBe(before[i])
      return []
    })
    for (const count of Object.values(tally(heirs)))
      expect(Math.abs(count / heirs.length - 1 / 3)).toBeLessThan(0.1)
    expect(Object.keys(tally(heirs)).sort()).toEqual(['w1', 'w2', 'w4'])
  })

  it('moves an even share to a member that joins, and nothing else', () => {
    const strategy = makeStrategy('sticky-key')
    const before = choose(strategy, members('w1', 'w2', 'w3'), keys)
    const after = choose(strategy, members('w1', 'w2', 'w3', 'w4'), keys)
    const moved = keys.filter((_, i) => {
      if (after[i] !== before[i]) expect(after[i]).toBe('w4')
      return after[i] !== before[i]
    })
    expect(Math.abs(moved.length / keys.length - 1 / 4)).toBeLessThan(0.04)
  })

  it('answers the member of the key though it is busy, so that the record waits for it', () => {
    const all = members('a', 'b', 'c')
    const strategy = makeStrategy('sticky-key')
    const key = keys.find((each) => choose(strategy, all, [each])[0] === 'b') as string
    expect(choose(strategy, all, [key], [all[0] as MemberView])).toEqual(['b'])
  })

  it('gives keyless records to free members in turn', () => {
    const all = members('a', 'b', 'c')
    expect(choose(makeStrategy('sticky-key'), all, times(4), all.slice(1))).toEqual(['b', 'c', 'b', 'c'])
  })
})
