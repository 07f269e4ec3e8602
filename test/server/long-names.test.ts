/**
 * Names as long as a string can be, in every place of every request: whatever a handler says of them can be written, and
 * nothing throws. A name that is told in an error, or that is part of an id, is longer than itself.
 */
import { describe, expect, it } from 'vitest'
import { HANDLERS } from '../../src/server/handlers.ts'
import { Router } from '../../src/server/router.ts'
import { Session } from '../../src/server/session.ts'
import { readResponse, writeRequest } from '../../src/wire/api.ts'
import { type Struct, StructType } from '../../src/wire/schema.ts'
import { ArrayType, BYTES, INT16, INT32, STRING, type Type, UUID } from '../../src/wire/types.ts'
import { NO_UUID } from '../../src/wire/uuid.ts'
import { KafkaWorld } from '../support/kafka.ts'

const NAMES: readonly (readonly [what: string, name: string])[] = [
  ['of one byte each', 'x'.repeat(32_767)],
  ['of two bytes each', 'ü'.repeat(16_383)],
  ['that are halves of nothing', '\ufffd'.repeat(10_922)],
  ['of two code units each', '💥'.repeat(8_191)],
]

/** Everything that may be null is not, so that all of it is looked at. */
function filled(name: string, type: Type<unknown>, version: number, text: string): unknown {
  if (type instanceof StructType) return structOf(type.fields, version, text)
  if (type instanceof ArrayType) return [filled(name, type.item, version, text)]
  // Half of them are not members yet: what they become is made of their names.
  if (name === 'memberId' && version % 2 === 0) return ''
  if (type === STRING) return text
  if (type === UUID) return NO_UUID
  if (type === BYTES) return new Uint8Array(0)
  if (name === 'sessionTimeoutMs') return 30_000
  if (name === 'resourceType') return 2
  if (type === INT32) return /epoch|generation/i.test(name) ? -1 : 0
  if (type === INT16) return /acks|replication/i.test(name) ? 1 : 0
  return type.empty
}

function structOf(fields: Struct, version: number, text: string): object {
  const there = Object.entries(fields).filter(([, { options }]) => {
    return version >= options.since && version <= options.until
  })
  return Object.fromEntries(there.map(([name, { type }]) => [name, filled(name, type, version, text)]))
}

describe.each(HANDLERS.map((each) => [each.api.name, each] as const))('%s', (_, handler) => {
  const { api } = handler
  const versions = Array.from({ length: api.max - api.min + 1 }, (_, i) => api.min + i)

  it.each(NAMES)('with names of 32,767 bytes, %s, is answered in every version', async (_, text) => {
    const world = new KafkaWorld()
    const router = new Router(world.kafka, HANDLERS)
    const door = { listener: 'PLAINTEXT', node: world.kafka.cluster.nodes[0] as never, authenticates: false }
    for (const version of versions) {
      const session = new Session('127.0.0.1', door, () => {})
      const body = structOf(api.request.type.fields, version, text)
      const pieces = writeRequest(api, version, { correlationId: 1, clientId: text }, body as never)
      const frame = new Uint8Array(Buffer.concat(pieces).subarray(4))
      let frames: readonly Uint8Array[] | null | undefined
      const answering = Promise.resolve(router.route(frame, session)).then((answer) => {
        frames = answer
      })
      for (let i = 0; i < 50 && frames === undefined; i++) await world.clock.advance(10_000)
      await answering
      if (frames !== null && frames !== undefined) {
        readResponse(api, version, new Uint8Array(Buffer.concat(frames).subarray(4)))
      }
      session.end()
    }
    expect(world.logged.filter(({ level }) => level === 'error')).toEqual([])
    await world.broker.close({ drainMs: 0 })
  })
})
