/** Batches as a hostile producer sends them: sound ones, some with another header, some with broken bytes. */
import { gzipSync } from 'node:zlib'
import { writeInt16, writeInt32, writeInt64 } from '../../../src/log/format/integers.ts'
import {
  ATTRIBUTES_AT,
  BASE_TIMESTAMP_AT,
  COUNT_AT,
  HEADER_BYTES,
  LAST_DELTA_AT,
  MAGIC_AT,
  MAX_TIMESTAMP_AT,
  PRODUCER_EPOCH_AT,
  PRODUCER_ID_AT,
  SEQUENCE_AT,
  SIZE_AT,
} from '../../../src/log/format/layout.ts'
import { batchOf, changed, START_MS } from '../../support/record-batches.ts'
import type { Dice } from '../dice.ts'
import { mutated } from '../wire/mutate.ts'
import type { Lore } from './lore.ts'

const NOTHING = new Uint8Array(0)
const INT64S = [0, -1, 1, 2 ** 31, 2 ** 53, -(2 ** 53), 2 ** 62, -(2 ** 63), START_MS, START_MS + 3_600_000]
const INT32S = [0, -1, 1, 2, 1_000, 2 ** 31 - 1, -(2 ** 31)]
const INT16S = [0, -1, 1, 2, 32_767, -32_768]
/** Compression types, timestamp type, transactional, control, and what nobody knows. */
const ATTRIBUTES = [1, 2, 3, 4, 5, 7, 8, 16, 48, 32, 0x40, 0x7fff, -1]
const ZEROES = new Uint8Array(1_000_000)

export function strangeBatch(dice: Dice, lore: Lore): Uint8Array {
  const roll = dice.below(12)
  if (roll === 0)
    return dice.chance(0.5) ? NOTHING : Uint8Array.from({ length: dice.below(200) }, () => dice.below(256))
  const sound = soundBatch(dice, lore)
  if (roll < 6) return sound
  if (roll < 8) return mutated(sound, sound, dice)
  if (roll === 8 && dice.chance(0.02)) return bomb(dice)
  return changed(sound, (bytes) => {
    for (let left = 1 + dice.below(2); left > 0; left--) dice.pick(STRANGE_HEADERS)(bytes, dice)
  })
}

function soundBatch(dice: Dice, lore: Lore): Uint8Array {
  const values = Array.from({ length: 1 + dice.below(4) }, (_, i) =>
    dice.chance(0.1) ? null : `hostile-${i}`,
  )
  const id = lore.recall('producerId', dice)
  const named = typeof id === 'number' && id >= 0 && dice.chance(0.6)
  const keys = dice.chance(0.2) ? null : values.map((_, i) => `k${i}`)
  if (!named) return batchOf({ values, keys })
  const epoch = (lore.recall('producerEpoch', dice) as number | undefined) ?? 0
  const producer = { id, epoch, sequence: dice.below(3), transactional: dice.chance(0.5) }
  return batchOf({ values, keys, producer })
}

type Strange = (bytes: Uint8Array, dice: Dice) => void

const STRANGE_HEADERS: readonly Strange[] = [
  (bytes, dice) => writeInt16(bytes, ATTRIBUTES_AT, dice.pick(ATTRIBUTES)),
  (bytes, dice) => writeInt32(bytes, COUNT_AT, dice.pick(INT32S)),
  (bytes, dice) => writeInt32(bytes, LAST_DELTA_AT, dice.pick(INT32S)),
  (bytes, dice) => writeInt64(bytes, BASE_TIMESTAMP_AT, dice.pick(INT64S)),
  (bytes, dice) => writeInt64(bytes, MAX_TIMESTAMP_AT, dice.pick(INT64S)),
  (bytes, dice) => writeInt64(bytes, PRODUCER_ID_AT, dice.pick(INT64S)),
  (bytes, dice) => writeInt16(bytes, PRODUCER_EPOCH_AT, dice.pick(INT16S)),
  (bytes, dice) => writeInt32(bytes, SEQUENCE_AT, dice.pick(INT32S)),
  (bytes, dice) => bytes.fill(dice.pick([0, 1, 2, 3, 255]), MAGIC_AT, MAGIC_AT + 1),
  (bytes, dice) => writeInt32(bytes, SIZE_AT, dice.pick(INT32S)),
]

/** A thousand times as large as it looks, by gzip. */
function bomb(dice: Dice): Uint8Array {
  const sound = batchOf({ values: ['a'] })
  const packed = gzipSync(ZEROES)
  const bytes = new Uint8Array(HEADER_BYTES + packed.length)
  bytes.set(sound.subarray(0, HEADER_BYTES))
  bytes.set(packed, HEADER_BYTES)
  return changed(bytes, (each) => {
    writeInt32(each, SIZE_AT, each.length - 12)
    writeInt16(each, ATTRIBUTES_AT, 1)
    writeInt32(each, COUNT_AT, dice.pick([1, 1_000, 2 ** 31 - 1]))
  })
}
