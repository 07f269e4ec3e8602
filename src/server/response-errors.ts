/**
 * Where the error codes of an API's responses are: in the response, in its topics, in their partitions. Taken from its
 * schema once, so that looking for them takes no longer than there are places that have one.
 */
import type { Api } from '../wire/api.ts'
import { type Struct, StructType } from '../wire/schema.ts'
import { ArrayType } from '../wire/types.ts'

type Values = { readonly [name: string]: unknown }

interface Place {
  /** Names of fields that are error codes. */
  readonly codes: readonly string[]
  /** Lists with error codes in them. */
  readonly lists: readonly (readonly [name: string, Place])[]
}

const places = new WeakMap<Api, Place>()

export function isErrorCode(name: string): boolean {
  return name === 'errorCode' || name === 'partitionErrorCode'
}

/** Calls `found` with every error code that is not 0. */
export function eachError(api: Api, response: unknown, found: (code: number) => void): void {
  let place = places.get(api)
  if (place === undefined) {
    place = placeOf(api.response.type.fields)
    places.set(api, place)
  }
  look(place, response as Values, found)
}

function look({ codes, lists }: Place, values: Values, found: (code: number) => void): void {
  for (const name of codes) {
    const code = values[name]
    if (typeof code === 'number' && code !== 0) found(code)
  }
  for (const [name, place] of lists) {
    for (const each of (values[name] ?? []) as readonly Values[]) look(place, each, found)
  }
}

function placeOf(fields: Struct): Place {
  const codes = Object.keys(fields).filter(isErrorCode)
  const lists = Object.entries(fields).flatMap(([name, { type }]): [string, Place][] => {
    if (!(type instanceof ArrayType) || !(type.item instanceof StructType)) return []
    const place = placeOf(type.item.fields)
    return place.codes.length + place.lists.length === 0 ? [] : [[name, place]]
  })
  return { codes, lists }
}
