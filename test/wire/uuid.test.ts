import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NO_UUID, uuidText, writeUuid } from '../../src/wire/uuid.ts'

describe('a UUID', () => {
  it('is the text that Kafka prints: base64url without padding, and the same bytes again', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.nat(5), (bytes, at) => {
        const padded = new Uint8Array(32)
        padded.set(bytes, at)
        const text = uuidText(padded, at)
        expect(text).toBe(Buffer.from(bytes).toString('base64url'))
        const out = new Uint8Array(32)
        writeUuid(out, at, text)
        expect(out).toEqual(padded)
      }),
    )
  })

  it('is all zeros where there is none', () => {
    expect(NO_UUID).toBe(uuidText(new Uint8Array(16), 0))
  })

  it.each(['', 'AAAAAAAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAAAAAAAAA'])(
    'is not "%s", of another length',
    (text) => {
      expect(() => writeUuid(new Uint8Array(16), 0, text)).toThrow('22 characters')
    },
  )

  it.each(['+', '/', '=', ' ', 'é', '名', '\u{7f}'])('has no "%s" in it, wherever it stands', (character) => {
    for (let at = 0; at < 22; at++) {
      const text = `${'A'.repeat(at)}${character}${'A'.repeat(21 - at)}`
      expect(() => writeUuid(new Uint8Array(16), 0, text)).toThrow('base64url')
    }
  })
})
