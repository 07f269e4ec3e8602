/** Whatever bytes come, a connection answers or ends; the others go on, and nothing is kept. Prints its seed. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { echo, echoOf, Kit } from './kit.ts'

/** Requests, whole, cut, with bytes changed, and plain noise. */
const stretch = fc.oneof(
  fc.string({ maxLength: 40 }).map((name) => echoOf(name)),
  fc.tuple(fc.string({ maxLength: 40 }), fc.nat(60)).map(([name, at]) => echoOf(name).subarray(0, at)),
  fc.tuple(fc.nat(60), fc.nat(255)).map(([at, byte]) => {
    const bytes = echoOf('some name')
    bytes[at % bytes.length] = byte
    return bytes
  }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
)

describe('any stream of bytes', () => {
  it('ends with its connection, in any pieces', async () => {
    const anything = fc.tuple(fc.array(stretch, { maxLength: 6 }), fc.array(fc.nat(400), { maxLength: 4 }))
    await fc.assert(
      fc.asyncProperty(anything, async ([stretches, cuts]) => {
        // Not as many bytes as it asks for, which may be a gigabyte.
        await using kit = await Kit.open({ answer: ({ name }) => ({ name, data: new Uint8Array(0) }) })
        const [strange, good] = [await kit.connect(), await kit.connect()]
        const stream = Buffer.concat(stretches)
        let from = 0
        for (const to of [...cuts.sort((a, b) => a - b), stream.length]) {
          strange.send(stream.subarray(from, to))
          from = to
          await new Promise((resolve) => setImmediate(resolve))
        }
        strange.socket.end()
        await strange.closed
        good.send(echoOf('good'))
        expect((await good.response(echo, 1)).body.name).toBe('good')
        await kit.connections[0]?.closed
        expect(kit.reasons('error')).toEqual([])
        expect(kit.shared.buffered.bytes).toBe(0)
      }),
      { numRuns: 150 },
    )
  })
})
