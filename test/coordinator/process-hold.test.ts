/** What is awaited is heard of: the process stays for a close that waits, and for a redrive at its pace. */
import { describe, expect, it } from 'vitest'
import { codeOf, World, watch } from '../support/world.ts'

async function twoDeadLetters(world: World): Promise<void> {
  await world.broker.createTopic('t')
  const fail = (): void => {
    throw new Error('bad')
  }
  await world.broker.subscribe('t', fail, { id: 'r', retry: { attempts: 1 } })
  await world.broker.publishAll('t', [{ value: 1 }, { value: 2 }])
  await world.broker.idle()
}

describe('the process stays', () => {
  it('while a close waits for a handler whose delivery a replay has taken', async () => {
    const world = new World()
    await world.broker.createTopic('t')
    const stuck = await world.broker.subscribe('t', () => new Promise(() => {}), { id: 'r' })
    await world.broker.publish('t', 1)
    await world.settle()
    await world.broker.resetOffset('t', 'r', 'latest')
    await world.settle()
    expect(world.clock.held).toBe(false)
    const closing = watch(stuck.close({ drainMs: 100 }))
    await world.settle()
    expect([world.clock.held, closing.state]).toEqual([true, 'waiting'])
    await world.clock.advance(100)
    expect([world.clock.held, closing.state]).toEqual([false, 'resolved'])
  })

  it('while a redrive waits for its next letter, which idle() waits for too', async () => {
    const world = new World()
    await twoDeadLetters(world)
    const redriving = watch(world.broker.redrive('dlq.t', { rate: 1, toAll: true }))
    await world.settle()
    const idle = watch(world.broker.idle())
    await world.settle()
    expect([world.clock.held, redriving.state, idle.state]).toEqual([true, 'waiting', 'waiting'])
    await world.clock.advance(1_000)
    await world.clock.advance(1_000)
    expect([world.clock.held, redriving.value, idle.state]).toEqual([
      false,
      { redriven: 2, kept: 0 },
      'resolved',
    ])
  })

  it('no longer than until the redrive is aborted, in the middle of a pause too', async () => {
    const world = new World()
    await twoDeadLetters(world)
    const controller = new AbortController()
    const code = codeOf(world.broker.redrive('dlq.t', { rate: 0.001, signal: controller.signal }))
    await world.settle()
    expect(world.clock.held).toBe(true)
    controller.abort()
    expect(await code).toBe('ABORTED')
    await world.settle()
    expect(world.clock.held).toBe(false)
  })
})
