/** Who is meant by a name on a topic: a broadcast reader by its id, a group, or the group of a member. */
import type { Reader } from '../core/reader.ts'
import { invalid } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import type { ReaderRef } from '../model/options.ts'
import { unknownConsumer } from './subscription.ts'

/** @throws OdradekError UNKNOWN_CONSUMER, INVALID_ARGUMENT where the name is that of several */
export function findReader(readers: Iterable<Reader>, topic: Topic, ref: ReaderRef): Reader {
  const { name, id, group } = namesIn(ref)
  const found: Reader[] = []
  for (const reader of readers) {
    if (!reader.reads(topic.id)) continue
    const byGroup = reader.kind !== 'broadcast' && reader.name === group
    const byId = reader.kind === 'broadcast' && reader.name === id
    if (byGroup || byId || reader.members.some((member) => member.id === id)) found.push(reader)
  }
  const [reader] = found
  if (reader === undefined) throw unknownConsumer(name, topic.name)
  if (found.length === 1) return reader
  throw invalid(
    `"${name}" names several readers of "${topic.name}"; say { id: "${name}" } or { group: "${name}" }`,
  )
}

interface Names {
  readonly name: string
  readonly id?: string
  readonly group?: string
}

/** A string may be either. */
function namesIn(ref: ReaderRef): Names {
  if (typeof ref === 'string') return { name: ref, id: ref, group: ref }
  const { id, group } = (ref ?? {}) as { readonly id?: unknown; readonly group?: unknown }
  if (typeof id === 'string' && group === undefined) return { name: id, id }
  if (typeof group === 'string' && id === undefined) return { name: group, group }
  throw invalid('a reader is a string, { id } or { group }')
}

/** An id for a member that brings none: one that no other has brought. */
export function freeId({ members }: Reader, next: () => number): string {
  for (;;) {
    const id = `member-${next()}`
    if (members.every((member) => member.id !== id)) return id
  }
}
