/** Breaks a frame in a few places: bits, cuts, lengths that lie, parts of other frames. */
import type { Dice } from '../dice.ts'

const INT32_LIES = [2 ** 31 - 1, -1, -2, -(2 ** 31), 2 ** 24, 255]
/** Longest, too long, too long by the highest bits, not ended. */
const VARINT_LIES = ['ffffffff0f', 'ffffffff7f', 'ffffffffff01', '8080808000', '80808080', 'ff7f', '00']
const BYTES = [0x00, 0x01, 0x7f, 0x80, 0xff]

type Mutation = (frame: Uint8Array, dice: Dice, other: Uint8Array) => Uint8Array

const MUTATIONS: readonly Mutation[] = [
  function turnBit(frame, dice) {
    const at = dice.below(frame.length)
    return replaced(frame, at, 1, Uint8Array.of((frame[at] ?? 0) ^ (1 << dice.below(8))))
  },
  (frame, dice) => replaced(frame, dice.below(frame.length), 1, Uint8Array.of(dice.pick(BYTES))),
  function cut(frame, dice) {
    return frame.subarray(0, dice.below(frame.length + 1))
  },
  (frame, dice) => replaced(frame, dice.below(frame.length + 1), 0, random(dice, 1 + dice.below(8))),
  (frame, dice) => replaced(frame, dice.below(frame.length), 1 + dice.below(8), new Uint8Array(0)),
  (frame, dice) => replaced(frame, dice.below(frame.length), 4, int32(dice.pick(INT32_LIES))),
  (frame, dice) => replaced(frame, dice.below(frame.length), 2, int32(dice.pick(INT32_LIES)).subarray(2)),
  (frame, dice) => replaced(frame, dice.below(frame.length), dice.below(2), varint(dice.pick(VARINT_LIES))),
  function repeatPart(frame, dice) {
    const from = dice.below(frame.length)
    const part = frame.subarray(from, from + 1 + dice.below(16))
    return replaced(frame, from, 0, part)
  },
  function graft(frame, dice, other) {
    return replaced(
      frame,
      dice.below(frame.length + 1),
      frame.length,
      other.subarray(dice.below(other.length)),
    )
  },
]

export function mutated(frame: Uint8Array, other: Uint8Array, dice: Dice): Uint8Array {
  let broken = frame
  for (let left = 1 + dice.below(4); left > 0; left--) broken = dice.pick(MUTATIONS)(broken, dice, other)
  return broken
}

export function replaced(
  frame: Uint8Array,
  at: number,
  sizeBytes: number,
  by: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const rest = frame.subarray(Math.min(at + sizeBytes, frame.length))
  const result = new Uint8Array(at + by.length + rest.length)
  result.set(frame.subarray(0, at))
  result.set(by, at)
  result.set(rest, at + by.length)
  return result
}

export function int32(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setInt32(0, value)
  return bytes
}

export function varint(digits: string): Uint8Array {
  return new Uint8Array(Buffer.from(digits, 'hex'))
}

function random(dice: Dice, sizeBytes: number): Uint8Array {
  return Uint8Array.from({ length: sizeBytes }, () => dice.below(256))
}
