import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkPattern, isPattern, TopicTrie } from '../../src/core/topic-trie.ts'
import { OdradekError } from '../../src/model/errors.ts'

/** The same rules, one pattern at a time. */
function naiveMatch(pattern: string, topic: string): boolean {
  const want = pattern.split('.')
  const have = topic.split('.')
  const reserved = topic.startsWith('dlq.') || topic.startsWith('__')
  if (reserved && want[0] !== have[0]) return false
  for (let i = 0; i < want.length; i++) {
    if (want[i] === '#') return true
    if (i >= have.length || (want[i] !== '*' && want[i] !== have[i])) return false
  }
  return want.length === have.length
}

function trieOf(...patterns: string[]): TopicTrie<string> {
  const trie = new TopicTrie<string>()
  for (const pattern of patterns) trie.add(pattern, pattern)
  return trie
}

describe('topic trie', () => {
  it('matches one level with *', () => {
    const trie = trieOf('orders.*', '*.eu', '*')
    expect(trie.match('orders.eu').sort()).toEqual(['*.eu', 'orders.*'])
    expect(trie.match('orders')).toEqual(['*'])
    expect(trie.match('orders.eu.north')).toEqual([])
  })

  it('matches zero or more last levels with #', () => {
    const trie = trieOf('orders.#', '#')
    expect(trie.match('orders').sort()).toEqual(['#', 'orders.#'])
    expect(trie.match('orders.eu.north').sort()).toEqual(['#', 'orders.#'])
    expect(trie.match('payments')).toEqual(['#'])
  })

  it('matches a name without wildcards literally', () => {
    expect(trieOf('a.b').match('a.b')).toEqual(['a.b'])
    expect(trieOf('a.b').match('a')).toEqual([])
  })

  it.each([
    ['dlq.orders', ['dlq.#', 'dlq.*']],
    ['__offsets', ['__offsets']],
    ['__meta.a', ['__meta.*']],
    ['dlq', ['#', '*', 'dlq.#']],
    ['dlqs.orders', ['#', '*.*', '*.orders']],
    ['_x', ['#', '*']],
  ])('reaches %s by patterns that name its first level, where it is reserved', (topic, expected) => {
    const trie = trieOf('#', '*', '*.*', '*.orders', 'dlq.*', 'dlq.#', '__offsets', '__meta.*')
    expect(trie.match(topic).sort()).toEqual(expected)
  })

  it('answers a value once, however many of its patterns match', () => {
    const trie = new TopicTrie<number>()
    for (const pattern of ['a.*', 'a.#', '#', 'a.b']) trie.add(pattern, 7)
    expect(trie.size).toBe(4)
    expect(trie.match('a.b')).toEqual([7])
  })

  it('counts pairs, and adding one twice as one', () => {
    const trie = new TopicTrie<number>()
    trie.add('a.*', 1)
    trie.add('a.*', 1)
    trie.add('a.*', 2)
    expect(trie.size).toBe(2)
    expect(trie.remove('a.*', 1)).toBe(true)
    expect(trie.remove('a.*', 1)).toBe(false)
    expect([trie.size, trie.match('a.x')]).toEqual([1, [2]])
  })

  it('says when there was nothing to remove', () => {
    const trie = trieOf('a.b.c')
    expect(['a.b', 'a.b.c.d', 'x', 'a.*.c'].map((pattern) => trie.remove(pattern, 'a.b.c'))).toEqual([
      false,
      false,
      false,
      false,
    ])
    expect(trie.remove('a.b.c', 'other')).toBe(false)
    expect(trie.match('a.b.c')).toEqual(['a.b.c'])
  })

  it('keeps nothing of what was removed', () => {
    const trie = new TopicTrie<object>()
    const kept = {}
    trie.add('a.b', kept)
    const walk = (): unknown => trie.match('a.b.c7.x')
    const before = nodes(walk)
    for (let i = 0; i < 50; i++) {
      const value = {}
      trie.add(`a.b.c${i}.#`, value)
      trie.add(`a.${i}`, value)
      expect(trie.remove(`a.b.c${i}.#`, value)).toBe(true)
      expect(trie.remove(`a.${i}`, value)).toBe(true)
    }
    expect(nodes(walk)).toBe(before)
    expect(trie.match('a.b')).toEqual([kept])
  })

  it('agrees with matching one pattern at a time', () => {
    const level = fc.constantFrom('a', 'b', 'dlq', '__x')
    const topic = fc.array(level, { minLength: 1, maxLength: 5 }).map((levels) => levels.join('.'))
    const pattern = fc
      .tuple(
        fc.array(fc.oneof(level, fc.constant('*')), { maxLength: 4 }),
        fc.constantFrom('', '#', 'a', '*'),
      )
      .map(([levels, last]) => (last === '' ? levels : [...levels, last]).join('.'))
      .filter((text) => text !== '')
    fc.assert(
      fc.property(
        fc.array(pattern, { maxLength: 25 }),
        fc.array(fc.nat(24), { maxLength: 10 }),
        fc.array(topic, { minLength: 1, maxLength: 10 }),
        (patterns, removals, topics) => {
          const trie = trieOf(...patterns)
          const left = new Set(patterns)
          for (const index of removals) {
            const gone = patterns[index]
            if (gone !== undefined) expect(trie.remove(gone, gone)).toBe(left.delete(gone))
          }
          expect(trie.size).toBe(left.size)
          for (const each of topics) {
            expect(trie.match(each).sort()).toEqual([...left].filter((one) => naiveMatch(one, each)).sort())
          }
        },
      ),
      { numRuns: 500 },
    )
  })

  it('visits no more nodes than levels when thousands of patterns do not apply', () => {
    const trie = new TopicTrie<number>()
    for (let i = 0; i < 5_000; i++) trie.add(`tenant-${i}.*.events.#`, i)
    expect(nodes(() => expect(trie.match('tenant-42.eu.events.a.b')).toEqual([42]))).toBeLessThan(20)
  })
})

describe('patterns', () => {
  it('are told from names by their wildcards', () => {
    expect(['a.b', 'a.*', '#', 'a-b_c', ''].map(isPattern)).toEqual([false, true, true, false, false])
  })

  it.each(['#', '*', 'a', 'a.b', 'a.*', '*.b.#', 'A-1_x.*.#', 'a'.repeat(245)])(
    '%s is well formed',
    (pattern) => {
      expect(() => checkPattern(pattern)).not.toThrow()
    },
  )

  it.each([
    ['a.#.b', '"#" stands for all remaining levels'],
    ['#.#', '"#" stands for all remaining levels'],
    ['a*', 'level of its own, unlike "a*"'],
    ['a.**', 'level of its own, unlike "**"'],
    ['a.b#', 'level of its own, unlike "b#"'],
    ['', 'has an empty level'],
    ['a..b', 'has an empty level'],
    ['.a', 'has an empty level'],
    ['a.', 'has an empty level'],
    ['a b.*', '"a b" has characters other than'],
    ['ä.*', '"ä" has characters other than'],
    ['a'.repeat(246), 'is longer than 245 characters'],
  ])('%s is refused, saying why', (pattern, why) => {
    const check = (): void => checkPattern(pattern)
    expect(check).toThrow(OdradekError)
    expect(check).toThrow(expect.objectContaining({ code: 'INVALID_TOPIC' }))
    expect(check).toThrow(why)
    expect(() => new TopicTrie<number>().add(pattern, 1)).toThrow(why)
  })

  it('are shown shortened when they are long', () => {
    expect(() => checkPattern('b'.repeat(300))).toThrow(`"${'b'.repeat(60)}…"`)
  })
})

/** How many look-ups of a child `run` makes: what a walk through the trie costs. */
function nodes(run: () => unknown): number {
  const original = Map.prototype.get
  let count = 0
  Map.prototype.get = function (this: Map<unknown, unknown>, key: unknown): unknown {
    count++
    return original.call(this, key)
  }
  try {
    run()
  } finally {
    Map.prototype.get = original
  }
  return count
}
