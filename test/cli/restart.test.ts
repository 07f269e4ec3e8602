/** `odradek consume --group` over a restart of its broker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { type Broker, openBroker } from '../../src/index.ts'
import { type KafkaServer, serve } from '../../src/server/server.ts'
import { Captured, folder, forgetFolders, odradekWith } from './kit.ts'

afterAll(forgetFolders)

/** What is printed, and a promise for a text in it. */
class Printed extends Captured {
  #waiting: (() => void) | undefined

  override write(text: string | Uint8Array, done: (error?: Error | null) => void): void {
    super.write(text, done)
    this.#waiting?.()
  }

  async until(text: string): Promise<void> {
    while (!this.text.includes(text)) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve
      })
    }
  }
}

interface Served {
  readonly broker: Broker
  readonly server: KafkaServer
}

async function served(path: string, port = 0): Promise<Served> {
  const broker = await openBroker(`file:${path}`)
  return { broker, server: await serve(broker, { port }) }
}

async function end({ broker, server }: Served): Promise<void> {
  await server.close({ drainMs: 0 })
  await broker.close()
}

describe('odradek consume --group', () => {
  it('goes on when its broker is back, each record once, and commits there', async () => {
    const data = await folder()
    const first = await served(data)
    const [{ port }] = first.server.addresses as unknown as [{ port: number }]
    const env = { ODRADEK_BROKERS: first.server.bootstrap }
    await first.broker.createTopic('orders')
    await first.broker.publish('orders', 'a')
    const [stdout, stop] = [new Printed(), new AbortController()]
    // Everything is committed at once.
    let now = 0
    const io = { env, stdout, interrupted: () => stop.signal, monotonic: () => (now += 2_000) }
    const running = odradekWith(io, 'consume', 'orders', '-g', 'crew', '-f', '%o=%s;')
    await stdout.until('0=')
    await end(first)
    const second = await served(data, port)
    await second.broker.publish('orders', 'b')
    await stdout.until('1=')
    stop.abort()
    expect(await running).toMatchObject({ code: 0, stderr: '' })
    expect(stdout.text).toBe('0=a;1=b;')
    const described = await odradekWith({ env }, 'group', 'describe', 'crew', '--json')
    expect(JSON.parse(described.stdout)).toMatchObject({
      state: 'Empty',
      lag: 0,
      partitions: [{ committed: 2 }],
    })
    await end(second)
  })

  it('ends when it is interrupted while the broker is away, and says that the group was not told', async () => {
    const only = await served(await folder())
    const env = { ODRADEK_BROKERS: only.server.bootstrap }
    await only.broker.createTopic('orders')
    const stop = new AbortController()
    const io = { env, interrupted: () => stop.signal }
    const running = odradekWith(io, 'consume', 'orders', '-g', 'crew')
    const groups = only.server.world.parts.groups
    while (groups.get('crew')?.state !== 'Stable') await sleep(5)
    await end(only)
    stop.abort()
    expect(await running).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /^odradek: the group was not told that this member ends, and waits 45 s for it: /,
      ),
    })
  })
})
