/**
 * What a hostile client asks: requests of every API and version, made from the descriptions of their messages. Most
 * fields are such as could be meant, so that what lies behind the first check is reached: names that there are, ids and
 * epochs that the server has given out. The others are as strange as their types allow.
 */

import type { Handler } from '../../../src/server/handler.ts'
import { writeRequest } from '../../../src/wire/api.ts'
import { subscriptionBytes } from '../../../src/wire/consumer-protocol.ts'
import { type Field, type Struct, StructType } from '../../../src/wire/schema.ts'
import {
  ArrayType,
  BOOLEAN,
  BYTES,
  FLOAT64,
  INT8,
  INT16,
  INT64,
  STRING,
  type Type,
  UINT16,
  UUID,
} from '../../../src/wire/types.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'
import type { Dice } from '../dice.ts'
import { strangeBatch } from './batches.ts'
import type { Lore } from './lore.ts'

/** Topics that the rig makes, and some that come to be. */
const TOPICS = ['plain', 'wide', 'compacted', 'held', 'packed', 'stamped', 'new.one', 'new_two', 'dlq.plain']
const GROUPS = ['g1', 'g2', 'g3', 'process', 'manual']
const TRANSACTIONS = ['t1', 't2', 't3']
const CONFIGS: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['retention.ms', ['-1', '1', '0.5', '600000', '9223372036854775807', 'NaN', '1e400']],
  ['retention.bytes', ['-1', '0', '1', '1000', '-9223372036854775808']],
  ['odradek.retention.records', ['1', '10', '0', '-1', '99999999999']],
  ['cleanup.policy', ['delete', 'compact', 'compact,delete', '', ',,,']],
  ['compression.type', ['producer', 'gzip', 'snappy', 'lz4', 'zstd', 'uncompressed', 'xz']],
  ['message.timestamp.type', ['CreateTime', 'LogAppendTime', 'never']],
  ['max.message.bytes', ['0', '1', '100', '1048588', '2147483647']],
  ['segment.bytes', ['14', '1024', '1073741824']],
  ['follower.replication.throttled.replicas', ['*', '0:1', '1:1,2:2', ':', '']],
  ['__proto__', ['polluted']],
]
/** Length, key, version, correlation id. */
const HEADER_BYTES = 12
const LONG = 'x'.repeat(32_767)
const STRANGE = [
  '',
  '.',
  '..',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  LONG,
  'y'.repeat(249),
  'z'.repeat(246),
  'a/b',
  'a%2Fb',
  '%',
  '*',
  '#',
  'ü',
  '💥'.repeat(8_000),
  '\u0000',
  '\ufffd',
  'new\nline',
  '__consumer_offsets',
  '__cluster_metadata',
  'a b',
]
const PATTERNS = ['.*', 't.*', '(((', '(a*)*b', '[', 'a{1000}', '(x{30}){30}', '\\', 'g[1-3]', '(?=a)']
const UUIDS = [NO_UUID, 'AAAAAAAAAAAAAAAAAAAAAQ', '_____________________w', 'AAAAAAAAAAAAAAAAAAAABA']
const INT32S = [0, 1, -1, 2, 3, 100, 6_000, 30_000, 10 ** 9, 2 ** 31 - 1, -(2 ** 31), -2, 65_536]
const INT64S = [
  0,
  1,
  -1,
  -2,
  -3,
  -4,
  -5,
  -6,
  2 ** 31,
  2 ** 53,
  -(2 ** 53),
  2 ** 62,
  -(2 ** 63),
  1_767_225_600_000,
]
const TINY = [0, 1, 1, 1, 2, 3]

/** What comes back is written by the handler's own API. */
export interface Asked {
  readonly handler: Handler
  readonly version: number
  readonly frame: Uint8Array
}

type Value = { [name: string]: unknown }

export class Requests {
  readonly #dice: Dice
  readonly #lore: Lore
  /** Items that may still be made for this request. */
  #left = 0

  constructor(dice: Dice, lore: Lore) {
    this.#dice = dice
    this.#lore = lore
  }

  /** A whole frame, with its length. */
  of(handler: Handler, correlationId: number): Asked {
    const { api } = handler
    const version = api.min + this.#dice.below(api.max - api.min + 1)
    this.#left = this.#dice.chance(0.01) ? 2_000 : 40
    const body = this.#struct(api.request.type.fields, version, '')
    const clientId = this.#dice.chance(0.02) ? LONG : this.#dice.pick(['hostile', '', null])
    const pieces = writeRequest(api, version, { correlationId, clientId }, body as never)
    const frame = new Uint8Array(Buffer.concat(pieces))
    if (this.#dice.chance(0.02)) spoilText(frame)
    return { handler, version, frame }
  }

  #struct(fields: Struct, version: number, within: string): Value {
    const value: Value = {}
    for (const [name, field] of Object.entries(fields)) {
      if (version < field.options.since || version > field.options.until) continue
      value[name] = this.#field(name, field, version, within)
    }
    return value
  }

  #field(name: string, { type, options }: Field<unknown>, version: number, within: string): unknown {
    const mayBeNull = version >= options.nullableSince
    if (mayBeNull && this.#dice.chance(0.3)) return null
    if (options.tag >= 0 && this.#dice.chance(0.7)) return options.fallback ?? type.empty
    return this.#value(name, type, version, within)
  }

  #value(name: string, type: Type<unknown>, version: number, within: string): unknown {
    const dice = this.#dice
    if (type instanceof ArrayType) return this.#array(name, type, version)
    if (type instanceof StructType) return this.#struct(type.fields, version, name)
    switch (type) {
      case STRING:
        return this.#string(name, within)
      case BYTES:
        return this.#bytes(name)
      case UUID:
        return dice.chance(0.7) ? (this.#lore.recall('topicId', dice) ?? NO_UUID) : dice.pick(UUIDS)
      case BOOLEAN:
        return dice.chance(0.5)
      case FLOAT64:
        return dice.pick([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e308])
      case INT64:
        return this.#int64(name)
      case INT8:
        return dice.pick([0, 0, 1, 1, 2, 9, -1, 127, -128])
      case INT16:
      case UINT16:
        return this.#int16(name)
      default:
        return this.#int32(name)
    }
  }

  #array(name: string, { item }: ArrayType<unknown>, version: number): unknown[] {
    const dice = this.#dice
    const wanted = dice.chance(0.01) ? 1_000 : dice.pick(TINY)
    const count = Math.min(wanted, this.#left)
    this.#left -= count
    return Array.from({ length: count }, () => this.#value(name, item, version, name))
  }

  #string(name: string, within: string): string {
    const dice = this.#dice
    if (dice.chance(0.06)) return dice.pick(STRANGE)
    const lower = name.toLowerCase()
    if (lower.includes('pattern') || lower.includes('regex')) return dice.pick(PATTERNS)
    if (lower.includes('topic') || (name === 'name' && within.toLowerCase().includes('topic'))) {
      return dice.pick(TOPICS)
    }
    if (lower.includes('group') && !lower.includes('instance')) return dice.pick(GROUPS)
    if (lower.includes('transactionalid')) return dice.pick(TRANSACTIONS)
    if (lower.includes('memberid')) return (this.#lore.recall('memberId', dice) as string | undefined) ?? ''
    if (lower.includes('instanceid')) return dice.pick(['i1', 'i2'])
    if (within.toLowerCase().includes('config')) return dice.pick(CONFIGS)[0]
    if (name === 'value') return dice.pick(dice.pick(CONFIGS)[1])
    if (name.startsWith('protocolType')) return dice.pick(['consumer', 'consumer', 'connect'])
    if (within === 'protocols' || name === 'protocolName') return dice.pick(['range', 'sticky'])
    if (name === 'resourceName') return dice.pick([...TOPICS, '0', '', '1'])
    if (name === 'serverAssignor') return dice.pick(['uniform', 'range'])
    if (name === 'key' || within === 'coordinatorKeys') return dice.pick([...GROUPS, ...TRANSACTIONS])
    return dice.pick(STRANGE)
  }

  #bytes(name: string): Uint8Array {
    const dice = this.#dice
    if (name === 'records') return strangeBatch(dice, this.#lore)
    if (name === 'metadata' && dice.chance(0.7))
      return subscriptionBytes([dice.pick(TOPICS), dice.pick(STRANGE)])
    const size = dice.chance(0.01) ? 50_000 : dice.below(40)
    return Uint8Array.from({ length: size }, () => dice.below(256))
  }

  #int64(name: string): number {
    const dice = this.#dice
    if (name === 'producerId' && dice.chance(0.8)) {
      return (this.#lore.recall('producerId', dice) as number | undefined) ?? -1
    }
    return dice.chance(0.6) ? dice.below(6) : dice.pick(INT64S)
  }

  #int16(name: string): number {
    const dice = this.#dice
    if (name === 'producerEpoch' && dice.chance(0.8)) {
      return (this.#lore.recall('producerEpoch', dice) as number | undefined) ?? -1
    }
    if (name === 'acks') return dice.pick([-1, 1, 0, 7])
    if (name === 'replicationFactor') return dice.pick([-1, 1, 1, 3])
    return dice.pick([0, 1, -1, 2, 32_767, -32_768])
  }

  #int32(name: string): number {
    const dice = this.#dice
    const told = this.#lore.recall(name, dice)
    if (typeof told === 'number' && dice.chance(0.7)) return told
    if (name === 'sessionTimeoutMs' && dice.chance(0.7)) return dice.pick([6_000, 30_000, 1_800_000])
    if (name === 'numPartitions' || name === 'count') return this.#partitions()
    if (/partition|index/i.test(name) && dice.chance(0.7)) return dice.below(4)
    if (name === 'resourceType' && dice.chance(0.8)) return dice.pick([2, 4])
    if (/epoch/i.test(name) && dice.chance(0.6)) return dice.pick([-1, 0, 0, 1])
    if (/bytes/i.test(name) && dice.chance(0.6)) return dice.pick([0, 1, 100_000, 2 ** 20])
    return dice.pick(INT32S)
  }

  /** What is refused, mostly, or little: or a round would be about making partitions. */
  #partitions(): number {
    const dice = this.#dice
    return dice.chance(0.001) ? 3_000 : dice.pick([1, 1, 2, 3, 4, 0, -1, -2, 10_001, 10 ** 9, 2 ** 31 - 1])
  }
}

/** Texts are no UTF-8 any more: each letter of a long one becomes a byte that stands for nothing. */
function spoilText(frame: Uint8Array): void {
  for (let at = HEADER_BYTES; at < frame.length; at++) {
    const byte = frame[at] as number
    if (byte >= 0x61 && byte <= 0x7a) frame[at] = 0xff
  }
}
