/** What `idle()` waits for when a handler settles its delivery and runs on. */
import { describe, expect, it } from 'vitest'
import { World, watch } from '../support/world.ts'

/** A reader whose handler acks at once and returns when `release` is called. */
async function ackThenRunOn(world: World): Promise<{ seen: unknown[]; release(): void }> {
  const topic = await world.broker.createTopic('t')
  const seen: unknown[] = []
  let returns: () => void = () => {}
  await topic.subscribe(
    (d) => {
      seen.push(d.value)
      d.ack()
      return new Promise<void>((resolve) => {
        returns = resolve
      })
    },
    { id: 'r', ack: 'manual', ackTimeoutMs: 1_000 },
  )
  await topic.publish(1)
  await topic.publish(2)
  await world.settle()
  return { seen, release: () => returns() }
}

describe('a handler that settled its delivery and runs on', () => {
  it('is no idle broker: its place is taken, and the next record waits for it', async () => {
    const world = new World()
    const { seen, release } = await ackThenRunOn(world)
    const idle = watch(world.broker.idle())
    await world.settle()
    expect([seen, idle.state]).toEqual([[1], 'waiting'])
    release()
    await world.settle()
    expect([seen, idle.state]).toEqual([[1, 2], 'waiting'])
    release()
    await world.settle()
    expect(idle.state).toBe('resolved')
  })

  it('does not hold the process open: nothing of the broker is unsettled', async () => {
    const world = new World()
    await ackThenRunOn(world)
    expect(world.clock.held).toBe(false)
  })

  it('is given up at its deadline, as a zombie that nobody waits for', async () => {
    const world = new World()
    const { seen } = await ackThenRunOn(world)
    const idle = watch(world.broker.idle())
    await world.clock.advance(1_000)
    expect(world.raised('stalled')).toMatchObject([{ reader: 'r', reason: 'zombies' }])
    expect([seen, idle.state]).toEqual([[1], 'resolved'])
  })
})
