/**
 * A response that says nothing but an error, for any API and any request: as Kafka's own, it has the error where clients
 * of that API look for it. That is in the innermost places that the request names (a partition of a topic), or, where
 * it names none, in the response itself.
 *
 *   request    topics ─► partitions ─► index            both are trees with the same branches, taken from
 *   response   topics ─► partitions ─► index, error     the schema; names and indexes are carried over
 */
import type { Api } from '../wire/api.ts'
import { type Struct, StructType } from '../wire/schema.ts'
import { ArrayType } from '../wire/types.ts'
import { isErrorCode } from './response-errors.ts'

type Values = { readonly [name: string]: unknown }

/** One thing that messages call by different names. */
const ALIASES: readonly (readonly string[])[] = [
  ['name', 'topic', 'topicName'],
  ['index', 'partition', 'partitionIndex'],
  ['groupId', 'key', 'name', 'topic'],
]

export function errorResponse(api: Api, request: unknown, code: number): unknown {
  return answered(api.response.type, request as Values, code).values
}

interface Answered {
  readonly values: Values
  /** Whether the error is in it. */
  readonly told: boolean
}

function answered({ fields }: StructType, request: Values, code: number): Answered {
  // What is not here is empty, as its version has it.
  const values: Record<string, unknown> = identity(fields, request)
  let told = false
  for (const [name, { type }] of Object.entries(fields)) {
    if (!(type instanceof ArrayType)) continue
    const item = type.item
    const asked = item instanceof StructType && hasError(item.fields) ? askedFor(name, request) : []
    const answers = asked.map((each) => answered(item as StructType, each, code))
    values[name] = answers.map((each) => each.values)
    told ||= answers.some((each) => each.told)
  }
  if (!told) {
    for (const name of Object.keys(fields).filter(isErrorCode)) {
      values[name] = code
      told = true
    }
  }
  return { values, told }
}

function hasError(fields: Struct): boolean {
  return Object.entries(fields).some(
    ([name, { type }]) =>
      isErrorCode(name) ||
      (type instanceof ArrayType && type.item instanceof StructType && hasError(type.item.fields)),
  )
}

/** What of the request a list of the response answers: the one of that name, or the first that has anything. */
function askedFor(name: string, request: Values): readonly Values[] {
  const lists = Object.entries(request).filter(
    (each): each is [string, readonly unknown[]] => Array.isArray(each[1]) && each[1].length > 0,
  )
  const [, list = []] = lists.find(([other]) => other === name) ?? lists[0] ?? []
  return list.map((each) => (typeof each === 'object' ? (each as Values) : { '': each }))
}

/** What says which topic, partition or group an answer is about. */
function identity(fields: Struct, request: Values): Record<string, unknown> {
  const own = Object.entries(fields).flatMap(([name, { type }]): [string, unknown][] => {
    const names = [name, ...ALIASES.filter((each) => each.includes(name)).flat(), '']
    const value = names.map((each) => request[each]).find((each) => typeof each === typeof type.empty)
    return value === undefined || isErrorCode(name) || typeof value === 'object' ? [] : [[name, value]]
  })
  return Object.fromEntries(own)
}
