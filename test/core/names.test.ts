import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkName, checkTopicName, collisionKey } from '../../src/core/names.ts'
import { OdradekError } from '../../src/model/errors.ts'

describe('topic names', () => {
  it.each([
    'a',
    'orders',
    'Orders.v1_eu-2',
    '...',
    '_',
    '__internal',
    'x'.repeat(245),
    `dlq.${'x'.repeat(245)}`,
  ])('%s is a name', (name) => {
    expect(checkTopicName(name)).toBe(name)
  })

  it.each<[unknown, string]>([
    [undefined, 'topic undefined: a name must be a string'],
    [null, 'topic null: a name must be a string'],
    [7, 'topic number: a name must be a string'],
    ['', 'topic "": a name must not be empty'],
    ['.', 'topic ".": "." and ".." are taken by file systems, choose another name'],
    ['..', 'topic "..": "." and ".." are taken by file systems, choose another name'],
    ['x'.repeat(246), `topic "${'x'.repeat(60)}…": a name has at most 245 characters, not 246`],
    [`dlq.${'x'.repeat(246)}`, `topic "dlq.${'x'.repeat(56)}…": a name has at most 249 characters, not 250`],
    ['orders.*', 'topic "orders.*": "*" makes a pattern, which can be subscribed to but is not a topic'],
    ['#', 'topic "#": "#" makes a pattern, which can be subscribed to but is not a topic'],
    ['a b', 'topic "a b": " " is not allowed, use letters, digits, ".", "_" and "-"'],
    ['a/b', 'topic "a/b": "/" is not allowed, use letters, digits, ".", "_" and "-"'],
    ['a\n', 'topic "a\\n": "\\n" is not allowed, use letters, digits, ".", "_" and "-"'],
    ['ü', 'topic "ü": "ü" is not allowed, use letters, digits, ".", "_" and "-"'],
    ['a😀*', 'topic "a😀*": "😀" is not allowed, use letters, digits, ".", "_" and "-"'],
  ])('%j is refused, saying what is wrong and what to do', (name, message) => {
    const check = (): string => checkTopicName(name)
    expect(check).toThrow(OdradekError)
    expect(check).toThrow(expect.objectContaining({ code: 'INVALID_TOPIC', message }))
  })

  it('are exactly the strings of the allowed characters', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 8, unit: fc.constantFrom('a', 'Z', '9', '.', '_', '-', ' ', 'é') }),
        (name) => {
          const fine = /^[aZ9._-]+$/.test(name) && name !== '.' && name !== '..'
          if (fine) expect(checkTopicName(name)).toBe(name)
          else expect(() => checkTopicName(name)).toThrow(OdradekError)
        },
      ),
    )
  })

  it('collide when they differ in "." and "_" only', () => {
    expect(collisionKey('a.b_c.d')).toBe(collisionKey('a_b.c_d'))
    expect(collisionKey('a.b')).not.toBe(collisionKey('a-b'))
    expect(collisionKey('a.b')).not.toBe(collisionKey('ab'))
  })
})

describe('ids and group names', () => {
  it.each(['a', 'worker-1', 'alice@example.com', 'with space', 'größe 😀', 'x'.repeat(249)])(
    '%s is a name',
    (name) => {
      expect(checkName('group', name)).toBe(name)
    },
  )

  it.each<[unknown, string]>([
    [undefined, 'group undefined: it must be a string'],
    [null, 'group null: it must be a string'],
    ['', 'group "": it must not be empty'],
    ['x'.repeat(250), `group "${'x'.repeat(60)}…": it has at most 249 characters, not 250`],
    ['a\tb', 'group "a\\tb": it has characters that cannot be printed'],
    ['a\u007f', 'group "a\u007f": it has characters that cannot be printed'],
    ['a\u200bb', 'group "a\u200bb": it has characters that cannot be printed'],
    ['a\u2028', 'group "a\u2028": it has characters that cannot be printed'],
    ['\ud800', 'group "\\ud800": it has characters that cannot be printed'],
  ])('%j is refused, saying what is wrong', (name, message) => {
    const check = (): string => checkName('group', name)
    expect(check).toThrow(OdradekError)
    expect(check).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }))
  })
})
