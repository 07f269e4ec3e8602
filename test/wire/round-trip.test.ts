/** Whatever a version of a message can hold is read as it was written. Failures print the seed that repeats them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { APIS } from '../../src/wire/apis.ts'
import { WireReader } from '../../src/wire/reader.ts'
import { WireWriter } from '../../src/wire/writer.ts'
import { structIn } from './arbitrary.ts'
import { messageOf, versionsOf } from './kafka-messages.ts'

const RUNS = 15

describe.each(['request', 'response'] as const)('%s', (kind) => {
  it.each(APIS.map((api) => [api.key, api.name, api] as const))(
    '%i %s: any value is read as it was written, in every version',
    (_, __, api) => {
      const message = messageOf(api, kind)
      for (const version of versionsOf(api)) {
        const property = fc.property(structIn(message.type.fields, version), (value) => {
          const to = new WireWriter()
          message.write(version, to, value as never)
          const from = new WireReader(new Uint8Array(Buffer.concat(to.pieces())))
          expect(message.read(version, from)).toEqual(value)
          expect(from.left).toBe(0)
        })
        fc.assert(property, { numRuns: RUNS })
      }
    },
    60_000,
  )
})
