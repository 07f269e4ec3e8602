import { describe, expect, it } from 'vitest'
import { Emitter } from '../../src/core/emitter.ts'

interface Events {
  moved: { to: number }
  stopped: string
}

function setup() {
  const errors: unknown[] = []
  const log: string[] = []
  const emitter = new Emitter<Events>((error, name) => errors.push([name, error]))
  const logAs = (who: string) => (event: { to: number }) => {
    log.push(`${who}:${event.to}`)
  }
  return { emitter, errors, log, logAs }
}

describe('emitter', () => {
  it('calls everybody in the order they came, with the event', () => {
    const { emitter, log, logAs } = setup()
    emitter.on('moved', logAs('a'))
    emitter.on('moved', logAs('b'))
    expect(emitter.emit('moved', { to: 1 })).toBe(true)
    expect(log).toEqual(['a:1', 'b:1'])
  })

  it('says that nobody listened', () => {
    const { emitter, logAs } = setup()
    emitter.on('moved', logAs('a'))
    expect(emitter.emit('stopped', 'x')).toBe(false)
  })

  it('stops calling who left, by the answer of on or by off', () => {
    const { emitter, log, logAs } = setup()
    const b = logAs('b')
    const leave = emitter.on('moved', logAs('a'))
    emitter.on('moved', b)
    leave()
    leave()
    emitter.emit('moved', { to: 1 })
    emitter.off('moved', b)
    emitter.off('moved', b)
    expect(emitter.emit('moved', { to: 2 })).toBe(false)
    expect(log).toEqual(['b:1'])
  })

  it('holds a registration for every on, and off ends the newest of them', () => {
    const { emitter, log, logAs } = setup()
    const a = logAs('a')
    emitter.on('moved', a)
    emitter.on('moved', logAs('b'))
    emitter.on('moved', a)
    emitter.off('moved', a)
    emitter.emit('moved', { to: 1 })
    expect(log).toEqual(['a:1', 'b:1'])
  })

  it('calls once only once, also when the listener emits again', () => {
    const { emitter, log, logAs } = setup()
    const a = logAs('a')
    emitter.once('moved', (event) => {
      a(event)
      emitter.emit('moved', { to: event.to + 1 })
    })
    expect(emitter.emit('moved', { to: 1 })).toBe(true)
    expect(emitter.emit('moved', { to: 5 })).toBe(false)
    expect(log).toEqual(['a:1'])
  })

  it('lets a once be taken back', () => {
    const { emitter, log, logAs } = setup()
    const a = logAs('a')
    emitter.once('moved', logAs('b'))()
    emitter.once('moved', a)
    emitter.off('moved', a)
    emitter.emit('moved', { to: 1 })
    expect(log).toEqual([])
  })

  it('counts who listens', () => {
    const { emitter, logAs } = setup()
    expect(emitter.listenerCount('moved')).toBe(0)
    const leave = emitter.on('moved', logAs('a'))
    emitter.once('moved', logAs('b'))
    expect(emitter.listenerCount('moved')).toBe(2)
    emitter.emit('moved', { to: 1 })
    expect(emitter.listenerCount('moved')).toBe(1)
    leave()
    expect(emitter.listenerCount('moved')).toBe(0)
  })

  it('lets a throwing listener stop neither the others nor the caller', () => {
    const { emitter, errors, log, logAs } = setup()
    const failure = new Error('mine')
    emitter.on('moved', () => {
      throw failure
    })
    emitter.on('moved', logAs('b'))
    expect(emitter.emit('moved', { to: 1 })).toBe(true)
    expect(log).toEqual(['b:1'])
    expect(errors).toEqual([['moved', failure]])
  })

  it('reports a promise that rejects, and a thenable that throws when asked', async () => {
    const { emitter, errors } = setup()
    const failure = new Error('later')
    emitter.on('moved', async () => {
      throw failure
    })
    emitter.on('moved', async () => 'fine')
    emitter.on('stopped', () => ({
      // biome-ignore lint/suspicious/noThenProperty: the very thing a careless listener may answer
      get then(): never {
        throw failure
      },
    }))
    emitter.emit('moved', { to: 1 })
    expect(errors).toEqual([])
    await new Promise((resolve) => setImmediate(resolve))
    expect(errors).toEqual([['moved', failure]])
    emitter.emit('stopped', 'x')
    expect(errors).toEqual([
      ['moved', failure],
      ['stopped', failure],
    ])
  })

  it('does not call who left during the event, nor who came during it', () => {
    const { emitter, log, logAs } = setup()
    emitter.on('moved', (event) => {
      if (event.to > 1) return
      leave()
      emitter.on('moved', logAs('late'))
    })
    const leave = emitter.on('moved', logAs('left'))
    emitter.on('moved', logAs('last'))
    emitter.emit('moved', { to: 1 })
    expect(log).toEqual(['last:1'])
    emitter.emit('moved', { to: 2 })
    expect(log).toEqual(['last:1', 'last:2', 'late:2'])
  })

  it('goes on when a listener removes itself', () => {
    const { emitter, log, logAs } = setup()
    const leave = emitter.on('moved', (event) => {
      logAs('self')(event)
      leave()
    })
    emitter.on('moved', logAs('next'))
    emitter.emit('moved', { to: 1 })
    emitter.emit('moved', { to: 2 })
    expect(log).toEqual(['self:1', 'next:1', 'next:2'])
  })
})
