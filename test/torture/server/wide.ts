/**
 * Requests that name very many things: for every API and every list in its messages, one request in which that list is
 * long and all others have one item. Names are all the same, or all different; topics, groups and the like are there,
 * so that each is really looked up.
 */
import type { Handler } from '../../../src/server/handler.ts'
import { type Struct, StructType } from '../../../src/wire/schema.ts'
import { ArrayType, BYTES, INT16, INT32, STRING, type Type, UUID } from '../../../src/wire/types.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'

export interface WideRequest {
  readonly handler: Handler
  readonly version: number
  /** Names of the lists on the way to the long one. */
  readonly path: string
  readonly isDistinct: boolean
  readonly body: object
}

/** What is there to be named. */
export interface Scenery {
  readonly topic: string
  readonly topicId: string
  readonly group: string
}

type Values = { [name: string]: unknown }

/** All of them for one API, in its newest version. */
export function wideRequests(handler: Handler, count: number, scenery: Scenery): WideRequest[] {
  const { api } = handler
  const version = api.max
  const paths = pathsOf(api.request.type.fields, version, [])
  return paths.flatMap((path) =>
    [false, true].map((isDistinct) => {
      const maker = new Maker(path, count, isDistinct, version, scenery)
      const body = maker.struct(api.request.type.fields, [])
      return { handler, version, path: path.join('.'), isDistinct, body }
    }),
  )
}

function pathsOf(fields: Struct, version: number, at: readonly string[]): string[][] {
  return Object.entries(fields).flatMap(([name, { type, options }]) => {
    if (version < options.since || version > options.until) return []
    const path = [...at, name]
    if (type instanceof StructType) return pathsOf(type.fields, version, path)
    if (!(type instanceof ArrayType)) return []
    const { item } = type
    return [path, ...(item instanceof StructType ? pathsOf(item.fields, version, path) : [])]
  })
}

class Maker {
  readonly #long: string
  readonly #count: number
  readonly #isDistinct: boolean
  readonly #version: number
  readonly #scenery: Scenery

  constructor(
    long: readonly string[],
    count: number,
    isDistinct: boolean,
    version: number,
    scenery: Scenery,
  ) {
    this.#long = long.join('.')
    this.#count = count
    this.#isDistinct = isDistinct
    this.#version = version
    this.#scenery = scenery
  }

  struct(fields: Struct, at: readonly string[], ordinal = 0): Values {
    const values: Values = {}
    for (const [name, { type, options }] of Object.entries(fields)) {
      if (this.#version < options.since || this.#version > options.until) continue
      values[name] = this.#value(name, type, [...at, name], ordinal)
    }
    return values
  }

  #value(name: string, type: Type<unknown>, at: readonly string[], ordinal: number): unknown {
    if (type instanceof StructType) return this.struct(type.fields, at, ordinal)
    if (type instanceof ArrayType) {
      const isLong = at.join('.') === this.#long
      // Others on the way have one; those beside it, which may be asked for by it, none or one.
      const count = isLong ? this.#count : 1
      return Array.from({ length: count }, (_, i) =>
        this.#value(name, type.item, at, isLong && this.#isDistinct ? i : ordinal),
      )
    }
    return this.#plain(name, type, at, ordinal)
  }

  #plain(name: string, type: Type<unknown>, at: readonly string[], ordinal: number): unknown {
    const { topic, topicId, group } = this.#scenery
    const place = at.join('.').toLowerCase()
    if (type === UUID) return place.includes('topic') ? topicId : NO_UUID
    if (type === BYTES) return new Uint8Array(0)
    if (type === INT32 || type === INT16) return this.#int(name, ordinal)
    if (type !== STRING) return type.empty
    const suffix = ordinal === 0 ? '' : String(ordinal)
    if (place.includes('group') && !place.includes('topic')) return `${group}${suffix}`
    if (place.includes('resourcename') || place.includes('topic')) return `${topic}${suffix}`
    return suffix
  }

  #int(name: string, ordinal: number): number {
    if (name === 'resourceType') return 2
    if (/partition|index/i.test(name)) return ordinal
    if (/bytes/i.test(name)) return 1_000
    if (name === 'acks') return 1
    if (name === 'sessionEpoch') return -1
    if (name === 'sessionTimeoutMs') return 30_000
    if (/epoch|generation|replication/i.test(name)) return -1
    return 0
  }
}
