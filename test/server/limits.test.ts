/** What connections share: bytes, and places. */
import { describe, expect, it } from 'vitest'
import { BufferedBytes, Places } from '../../src/server/limits.ts'

describe('buffered bytes', () => {
  it('wake who waits in their order, until they are full again', () => {
    const buffered = new BufferedBytes(10)
    const woken: string[] = []
    buffered.take(10)
    const goOn = (name: string, takes: number) => (): void => {
      woken.push(name)
      buffered.take(takes)
    }
    buffered.wait(goOn('a', 5))
    buffered.wait(goOn('b', 5))
    buffered.wait(goOn('c', 5))
    buffered.give(10)
    expect(woken).toEqual(['a', 'b'])
    expect(buffered.full).toBe(true)
    buffered.give(1)
    expect(woken).toEqual(['a', 'b', 'c'])
  })

  it('do not wake who left', () => {
    const buffered = new BufferedBytes(1)
    const woken: string[] = []
    const one = (): void => void woken.push('one')
    buffered.take(1)
    buffered.wait(one)
    buffered.forget(one)
    buffered.give(1)
    expect(woken).toEqual([])
  })

  it('do not grow the stack, however many wait for one another', () => {
    const buffered = new BufferedBytes(1)
    let woken = 0
    buffered.take(1)
    for (let i = 0; i < 50_000; i++) {
      buffered.wait(() => {
        woken++
        buffered.take(1)
        buffered.give(1)
      })
    }
    buffered.give(1)
    expect(woken).toBe(50_000)
  })
})

describe('places', () => {
  it('are so many in all, and so many for an address', () => {
    const places = new Places({ maxConnections: 3, maxConnectionsPerAddress: 2 })
    expect([places.take('a'), places.take('a')]).toEqual([undefined, undefined])
    expect(places.take('a')).toBe('a has 2 connections already (maxConnectionsPerAddress)')
    expect(places.take('b')).toBeUndefined()
    expect(places.take('c')).toBe('there are 3 connections already (maxConnections)')
    places.give('a')
    expect(places.take('a')).toBeUndefined()
    places.give('b')
    expect(places.take('c')).toBeUndefined()
  })
})
