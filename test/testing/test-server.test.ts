/** A Kafka broker for one test: there at once, and gone without a trace. */
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { startTestServer, type TestServer } from '../../src/testing/test-server.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { WireClient } from '../server/wire-client.ts'
import { codeOf } from '../support/world.ts'

const connectTo = (kafka: TestServer): Promise<WireClient> => {
  const [host, port] = kafka.bootstrap.split(':') as [string, string]
  return WireClient.connect({ host, port: Number(port) })
}

/** Sockets and ports of this process, when the loop has heard of what was closed. Timers are seen by the clock. */
async function resources(): Promise<string[]> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  return process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP'))
}

describe('startTestServer', () => {
  it('serves a broker of its own at a free port', async () => {
    await using one = await startTestServer()
    await using two = await startTestServer()
    expect(one.bootstrap).not.toBe(two.bootstrap)
    using client = await connectTo(one)
    expect((await client.ask(apiVersions, 0, {})).errorCode).toBe(0)
    await one.broker.createTopic('orders')
    expect(two.broker.listTopics()).toEqual([])
  })

  it('takes the options of broker and server', async () => {
    const clock = new ManualClock()
    await using kafka = await startTestServer({ nodes: 2, broker: { clock }, maxIdleMs: 1_000 })
    expect(kafka.bootstrap.split(',')).toHaveLength(2)
    expect(kafka.broker.metrics().at).toBe(clock.now())
  })

  it('takes listeners of their own', async () => {
    await using kafka = await startTestServer({ listeners: [{ name: 'A', port: 0 }] })
    expect(kafka.server.addresses.map(({ listener }) => listener)).toEqual(['A'])
  })

  it('refuses what cannot be, and leaves nothing', async () => {
    const before = await resources()
    expect(await codeOf(startTestServer({ port: -1 }))).toBe('INVALID_ARGUMENT')
    expect(await resources()).toEqual(before)
  })

  it('leaves no handle and no timer, whatever was going on', async () => {
    const before = await resources()
    const clock = new ManualClock()
    {
      await using kafka = await startTestServer({ broker: { clock } })
      const client = await connectTo(kafka)
      await client.ask(apiVersions, 0, {})
      client.close()
      using open = await connectTo(kafka)
      await open.ask(apiVersions, 0, {})
      expect((await resources()).length).toBeGreaterThan(before.length)
    }
    expect(await resources()).toEqual(before)
    expect(clock.pending).toBe(0)
  })

  it('is ready in less than 50 ms', async () => {
    const tookMs: number[] = []
    for (let i = 0; i < 5; i++) {
      const from = performance.now()
      await using _ = await startTestServer()
      tookMs.push(performance.now() - from)
    }
    // The quickest of some: other processes may have been in the way.
    expect(Math.min(...tookMs)).toBeLessThan(50)
  })
})
