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
const CODES = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0))
/** By character code; −1 is none of them. */
const VALUES = new Int8Array(128).fill(-1)
for (const [value, code] of CODES.entries()) VALUES[code] = value

/** Filled again for each. */
const codes: number[] = Array.from({ length: UUID_LENGTH }, () => 0)

export function uuidText(bytes: Uint8Array, from: number): string {
  let to = 0
  for (let at = from; at < from + 15; at += 3) {
    const bits = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number)
    for (let shift = 18; shift >= 0; shift -= 6) codes[to++] = CODES[(bits >> shift) & 0x3f] as number
  }
  const last = bytes[from + 15] as number
  codes[to++] = CODES[last >> 2] as number
  codes[to] = CODES[(last & 0x03) << 4] as number
  return String.fromCharCode.apply(null, codes)
}

export function writeUuid(out: Uint8Array, at: number, text: string): void {
  assert(text.length === UUID_LENGTH, 'a UUID has 22 characters')
  let to = at
  for (let i = 0; i < 20; i += 4) {
    const bits =
      (valueAt(text, i) << 18) |
      (valueAt(text, i + 1) << 12) |
      (valueAt(text, i + 2) << 6) |
      valueAt(text, i + 3)
    out[to++] = bits >> 16
    out[to++] = bits >> 8
    out[to++] = bits
  }
  out[to] = (valueAt(text, 20) << 2) | (valueAt(text, 21) >> 4)
}

function valueAt(text: string, index: number): number {
  const value = VALUES[text.charCodeAt(index)] ?? -1
  assert(value >= 0, 'a UUID is base64url')
  return value
}
