import { describe, expect, it } from 'vitest'
import { Writer, type WrittenBehind } from '../../../src/log/file/writer.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const ENOUGH = 1_000

/** Logs that only note when they are asked to write, and fail while `full` is set. */
class Scene {
  readonly clock = new ManualClock()
  readonly asked: string[] = []
  readonly failures: unknown[] = []
  recovered = 0
  full = false
  #blocked: Promise<void> | null = null
  readonly writer = new Writer(this.clock, ENOUGH, {
    failed: (error) => this.failures.push(error),
    recovered: () => this.recovered++,
  })

  log(name: string): WrittenBehind {
    return {
      writeBehind: async () => {
        this.asked.push(name)
        await this.#blocked
        if (this.full) throw new Error('full')
      },
    }
  }

  /** Writes wait until what is answered is called. */
  block(): () => void {
    let free: () => void = () => {}
    this.#blocked = new Promise((resolve) => {
      free = resolve
    })
    return free
  }
}

describe('what is written behind', () => {
  it('waits until there is enough of it, over all logs', async () => {
    const { writer, log, clock, asked } = bound(new Scene())
    const [a, b] = [log('a'), log('b')]
    writer.add(a, 1)
    writer.add(b, ENOUGH - 2)
    await clock.settle()
    expect(asked).toEqual([])
    writer.add(a, 1)
    await clock.settle()
    expect(asked).toEqual(['a', 'b'])
    writer.add(b, ENOUGH - 1)
    await clock.settle()
    expect(asked).toEqual(['a', 'b'])
  })

  it('is written at once where somebody waits for it, with what the others have', async () => {
    const { writer, log, clock, asked } = bound(new Scene())
    writer.add(log('a'), 1)
    writer.hurry(log('b'))
    await clock.settle()
    expect(asked).toEqual(['a', 'b'])
    writer.add(log('c'), 1)
    await clock.settle()
    expect(asked).toEqual(['a', 'b'])
  })

  it('is written again when enough came while it was', async () => {
    const scene = new Scene()
    const { writer, clock, asked } = scene
    const [a, b] = [scene.log('a'), scene.log('b')]
    const free = scene.block()
    writer.add(a, ENOUGH)
    await clock.settle()
    writer.add(a, ENOUGH)
    writer.add(b, 1)
    await clock.settle()
    expect(asked).toEqual(['a'])
    free()
    await clock.settle()
    expect(asked).toEqual(['a', 'a', 'b'])
  })

  it('is tried again after a while, when the disk was full, whatever else comes', async () => {
    const scene = new Scene()
    const { writer, clock, asked, failures } = scene
    const [a, b] = [scene.log('a'), scene.log('b')]
    scene.full = true
    writer.hurry(a)
    await clock.settle()
    writer.hurry(b)
    await clock.advance(999)
    expect([asked, failures.length]).toEqual([['a'], 1])
    scene.full = false
    await clock.advance(1)
    expect([asked, scene.recovered]).toEqual([['a', 'a', 'b'], 1])
  })

  it('is not written once it is forgotten, nor after the end', async () => {
    const scene = new Scene()
    const { writer, clock, asked } = scene
    const [a, b] = [scene.log('a'), scene.log('b')]
    writer.add(a, 1)
    await writer.forget(a)
    writer.hurry(b)
    await clock.settle()
    expect(asked).toEqual(['b'])
    await writer.stop()
    writer.hurry(a)
    writer.add(b, 2 * ENOUGH)
    await clock.settle()
    expect(asked).toEqual(['b'])
  })

  it('is done before a log that is being written is forgotten', async () => {
    const scene = new Scene()
    const a = scene.log('a')
    const free = scene.block()
    scene.writer.hurry(a)
    await scene.clock.settle()
    let forgotten = false
    const forgetting = scene.writer.forget(a).then(() => {
      forgotten = true
    })
    await scene.clock.settle()
    expect(forgotten).toBe(false)
    free()
    await forgetting
  })
})

function bound(scene: Scene): Pick<Scene, 'writer' | 'log' | 'clock' | 'asked'> {
  const { writer, clock, asked } = scene
  return { writer, clock, asked, log: (name) => scene.log(name) }
}
