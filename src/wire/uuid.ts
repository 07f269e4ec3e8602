/**
 * UUIDs as Kafka prints them: 16 bytes in base64url, without padding. Topic ids look like this everywhere in Odradek.
 *
 *   22 characters of 6 bits = 132 bits: the last one carries 2 bits that count
 */
import { assert } from '../model/errors.ts'

export const UUID_BYTES = 16
const UUID_LENGTH = 22
/** No topic has this id: it stands for none. */
export const NO_UUID: string = 'A'.repeat(UUID_LENGTH)

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const VALUES = new Map([...ALPHABET].map((character, value) => [character, value]))

export function uuidText(bytes: Uint8Array, from: number): string {
  let text = ''
  let bits = 0
  let held = 0
  for (let i = 0; i < UUID_BYTES; i++) {
    bits = (bits << 8) | (bytes[from + i] as number)
    for (held += 8; held >= 6; ) {
      held -= 6
      text += ALPHABET[(bits >> held) & 0x3f]
    }
    bits &= 0x3f
  }
  return text + ALPHABET[(bits << (6 - held)) & 0x3f]
}

export function writeUuid(out: Uint8Array, at: number, text: string): void {
  assert(text.length === UUID_LENGTH, `"${text}" is a UUID of ${UUID_LENGTH} characters`)
  let bits = 0
  let held = 0
  let to = at
  for (const character of text) {
    const value = VALUES.get(character)
    assert(value !== undefined, `"${text}" is base64url`)
    bits = ((bits << 6) | value) & 0xffff
    held += 6
    if (held < 8 || to === at + UUID_BYTES) continue
    held -= 8
    out[to++] = bits >> held
  }
}
