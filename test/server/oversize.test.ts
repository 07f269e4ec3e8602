/**
 * Requests that say they are larger than may be, or that there is more in them than there can be: refused before anything
 * is made for them, by what class they are of.
 */
import { describe, expect, it } from 'vitest'
import { type Handler, handler } from '../../src/server/handler.ts'
import { MAX_REQUEST_ITEMS, MAX_UNAUTHENTICATED_BYTES } from '../../src/server/limits.ts'
import { serve } from '../../src/server/server.ts'
import { startTestServer, type TestServer } from '../../src/testing/test-server.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { findCoordinator } from '../../src/wire/messages/10-find-coordinator.ts'
import { describeGroups } from '../../src/wire/messages/15-describe-groups.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { WireWriter } from '../../src/wire/writer.ts'
import { echoOf, Kit } from './kit.ts'
import { requestOf, WireClient } from './wire-client.ts'

const MiB = 2 ** 20
const GIANT = 2 ** 31 - 1

function length(sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(sizeBytes)
  return bytes
}

/** What it takes to send so much, and hear that the connection is closed. */
async function growthOf(kit: Kit, bytes: Uint8Array): Promise<number> {
  const client = await kit.connect()
  const before = process.memoryUsage()
  client.send(bytes)
  await client.closed
  const after = process.memoryUsage()
  return after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed
}

describe('a length', () => {
  it.each([
    ['before authentication', MAX_UNAUTHENTICATED_BYTES + 1, true],
    ['before authentication', GIANT, true],
    ['of any request', 100 * MiB + 1, false],
    ['of any request', GIANT, false],
    ['below zero', -1, false],
    ['below zero', -(2 ** 31), true],
  ])(
    '%s of %i is refused when it is read, and nothing is made for it',
    async (_, sizeBytes, authenticates) => {
      await using kit = await Kit.open({ authenticates, maxRequestBytes: 100 * MiB })
      expect(await growthOf(kit, length(sizeBytes))).toBeLessThan(8 * MiB)
      expect(kit.shared.buffered.bytes).toBe(0)
      expect(kit.reasons('warn')).toHaveLength(1)
    },
  )

  it('before authentication may be 64 KiB', async () => {
    await using kit = await Kit.open({ authenticates: true })
    const client = await kit.connect()
    client.send(length(MAX_UNAUTHENTICATED_BYTES), Buffer.alloc(1_000))
    await kit.until(() => kit.shared.buffered.bytes >= MAX_UNAUTHENTICATED_BYTES)
    expect(kit.reasons('warn')).toEqual([])
  })
})

describe('a request', () => {
  const connectTo = (kafka: TestServer): Promise<WireClient> =>
    WireClient.connect(kafka.server.addresses[0] as { host: string; port: number })

  /** Whether a server answers a request of so many bytes in all. */
  async function answers(
    kafka: TestServer,
    api: typeof metadata | typeof produce,
    sizeBytes: number,
  ): Promise<boolean> {
    using client = await connectTo(kafka)
    const small =
      api.key === produce.key
        ? requestOf(produce, 9, { transactionalId: null, acks: 1, timeoutMs: 0, topicData: [] })
        : requestOf(metadata, 9, { topics: [] })
    // What follows the body is not looked at.
    const frame = Buffer.alloc(4 + sizeBytes)
    small.copy(frame)
    frame.writeInt32BE(sizeBytes)
    client.send(frame)
    return (await client.frame()) !== undefined
  }

  it('that is no Produce has maxPlainRequestBytes at most, and Produce has maxRequestBytes', async () => {
    await using kafka = await startTestServer({ maxPlainRequestBytes: 10_000, maxRequestBytes: 50_000 })
    expect(await answers(kafka, metadata, 10_000)).toBe(true)
    expect(await answers(kafka, metadata, 10_001)).toBe(false)
    expect(await answers(kafka, produce, 50_000)).toBe(true)
    expect(await answers(kafka, produce, 50_001)).toBe(false)
  })

  it('that is no Produce has 8 MiB where nothing is said, and more where that is', async () => {
    await using plain = await startTestServer()
    expect(await answers(plain, metadata, 8 * MiB)).toBe(true)
    expect(await answers(plain, metadata, 8 * MiB + 1)).toBe(false)
    expect(await answers(plain, produce, 8 * MiB + 1)).toBe(true)
    await using larger = await startTestServer({ maxPlainRequestBytes: 16 * MiB })
    expect(await answers(larger, metadata, 8 * MiB + 1)).toBe(true)
  })

  it('has a bound that is a number above 0', async () => {
    await using kafka = await startTestServer()
    for (const bad of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(serve(kafka.broker, { port: 0, maxPlainRequestBytes: bad })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
    }
  })
})

describe('a count within', () => {
  /** A request whose one list says that it has so many items; so many bytes of it follow. */
  function listOf(api: typeof describeGroups | typeof metadata, count: number, bytes: number): Buffer {
    const to = new WireWriter()
    to.startFrame()
    to.int16(api.key)
    to.int16(0)
    to.int32(1)
    to.int16(-1)
    to.int32(count)
    to.bytes(new Uint8Array(bytes))
    return Buffer.concat(to.finishFrame())
  }

  const silent = (api: typeof describeGroups): Handler =>
    handler(api, () => ({ throttleTimeMs: 0, groups: [] }))

  it.each([GIANT, 2 ** 30, 1_000_001])(
    'of %i is refused where there is no room for so many',
    async (count) => {
      await using kit = await Kit.open({ handlers: [silent(describeGroups)], maxRequestBytes: 16 * MiB })
      expect(await growthOf(kit, listOf(describeGroups, count, 1_000_000))).toBeLessThan(32 * MiB)
      expect(kit.reasons('warn')[0]).toMatch(/no room for/)
    },
  )

  it.each([-1, -(2 ** 31)])('of %i is refused', async (count) => {
    await using kit = await Kit.open({ handlers: [silent(describeGroups)] })
    await growthOf(kit, listOf(describeGroups, count, 100))
    expect(kit.reasons('warn')[0]).toMatch(/malformed/)
  })

  it('is 131,072 at most, of all lists together, whatever there is room for', async () => {
    await using kit = await Kit.open({ handlers: [silent(describeGroups)], maxRequestBytes: 16 * MiB })
    const client = await kit.connect()
    client.send(listOf(describeGroups, MAX_REQUEST_ITEMS, 2 * MAX_REQUEST_ITEMS))
    expect(await client.frame()).toBeDefined()
    client.send(listOf(describeGroups, MAX_REQUEST_ITEMS + 1, 2 * MAX_REQUEST_ITEMS + 2))
    expect(await client.frame()).toBeUndefined()
    expect(kit.reasons('warn')[0]).toMatch(/too many for one request/)
  })

  it('counts also where lists are within lists', async () => {
    await using kafka = await startTestServer()
    const half = MAX_REQUEST_ITEMS / 2
    for (const [count, isAnswered] of [
      [half - 2, true],
      [half, false],
    ] as const) {
      using client = await WireClient.connect(kafka.server.addresses[0] as { host: string; port: number })
      const partition = { index: 0, records: null }
      const topicData = [1, 2].map(() => {
        return { name: 'a', partitionData: Array.from({ length: count }, () => partition) }
      })
      client.send(requestOf(produce, 9, { transactionalId: null, acks: 1, timeoutMs: 0, topicData }))
      expect((await client.frame()) !== undefined).toBe(isAnswered)
    }
  }, 20_000)

  it('of names of one byte does not make an answer of a gigabyte', async () => {
    await using kafka = await startTestServer()
    using client = await WireClient.connect(kafka.server.addresses[0] as { host: string; port: number })
    const coordinatorKeys = Array.from({ length: 4 * MiB }, () => '')
    client.send(requestOf(findCoordinator, 4, { keyType: 0, coordinatorKeys }))
    expect(await client.frame()).toBeUndefined()
    using other = await WireClient.connect(kafka.server.addresses[0] as { host: string; port: number })
    expect((await other.ask(apiVersions, 0, {})).errorCode).toBe(0)
  })
})

describe('an honest client', () => {
  it('is answered beside all that', async () => {
    await using kit = await Kit.open()
    const honest = await kit.connect()
    for (const bad of [GIANT, -1, 2 ** 24]) {
      const client = await kit.connect()
      client.send(length(bad))
      await client.closed
      honest.send(echoOf('honest'))
      expect(await honest.frame()).toBeDefined()
    }
  })
})
