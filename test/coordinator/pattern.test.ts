import { describe, expect, it } from 'vitest'
import { patternOf } from '../../src/coordinator/pattern.ts'

/** Pieces of patterns that mean the same in JavaScript. */
const PIECES = ['a', 'b', '.', '[ab]', '[^a]', '\\w', '\\d', '(a|b)', '(?:ab)', '(a|)', '(ab|a)', '-']
const REPEATS = ['', '', '*', '+', '?', '{2}', '{1,2}', '{0,}', '*?', '+?', '??']
const TEXTS = ['', 'a', 'b', 'ab', 'aab', 'abab', 'ba', 'a-b', '1', 'a1', 'bbb', 'aaaa', '-']

describe('a pattern', () => {
  it('matches as a whole', () => {
    const pattern = patternOf('my-.*')
    expect(pattern?.matches('my-app')).toBe(true)
    expect(pattern?.matches('my-')).toBe(true)
    expect(pattern?.matches('not my-app')).toBe(false)
  })

  it('agrees with regular expressions of JavaScript', () => {
    let seed = 7
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return Math.floor((seed / 2 ** 31) * below)
    }
    for (let i = 0; i < 3_000; i++) {
      let source = ''
      for (let piece = 1 + random(4); piece > 0; piece--) {
        source += `${PIECES[random(PIECES.length)]}${REPEATS[random(REPEATS.length)]}`
        if (random(6) === 0 && piece > 1) source += '|'
      }
      const theirs = new RegExp(`^(?:${source})$`, 'u')
      const ours = patternOf(source)
      for (const text of TEXTS) {
        expect(ours?.matches(text), `seed 7, ${source} on "${text}"`).toBe(theirs.test(text))
      }
    }
  })

  it.each([
    ['^a.c$', 'abc', true],
    ['a^', 'a', false],
    ['a|^b$', 'b', true],
    ['(a*)*', 'aaa', true],
    ['(a|b|)+', 'abba', true],
    ['[]a]+', ']a', true],
    ['[a-c-]+', 'b-', true],
    ['[\\d.]+', '1.2', true],
    ['[^\\w]', '-', true],
    ['\\.\\*', '.*', true],
    ['\\D\\W\\S', 'a-b', true],
    ['\\s\\t\\n', ' \t\n', true],
    ['.', '\n', false],
    ['.', '😀', true],
    ['a\\_b', 'a_b', true],
    ['', '', true],
    ['a{3}', 'aaa', true],
    ['a{2,}', 'a', false],
  ] as const)('%s on %j: %s', (source, text, expected) => {
    expect(patternOf(source)?.matches(text)).toBe(expected)
  })

  it.each([
    '(',
    ')',
    'a)',
    '[a',
    '[',
    '*',
    'a**',
    '+a',
    '?',
    '{2}',
    'a{2',
    'a{',
    'a{3,2}',
    'a{1001}',
    'a{,2}',
    '\\',
    '\\b',
    '\\1',
    '(?=a)',
    '(?<n>a)',
    '[b-a]',
    '[a-\\d]',
    '[[:alpha:]]',
    '(a{100}){100}',
    '('.repeat(200) + ')'.repeat(200),
  ])('%s is none', (source) => {
    expect(patternOf(source)).toBeUndefined()
  })

  it('takes no longer for what sends others back and forth', () => {
    const pattern = patternOf('(a*)*(a|a)*(.*)*b')
    expect(pattern?.matches('a'.repeat(5_000))).toBe(false)
  })
})
