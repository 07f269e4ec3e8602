/** What a broker has to do with what consumers say to one another. */
import { describe, expect, it } from 'vitest'
import { readableAssignment, topicsOf } from '../../src/server/consumer-protocol.ts'
import { subscriptionBytes } from '../../src/wire/consumer-protocol.ts'

const NOTHING = [0, 0, 0, 0, 0, 0, 255, 255, 255, 255]

describe('the topics of a member', () => {
  it('are those that it subscribes to, and unknown where that cannot be read', () => {
    expect(topicsOf(subscriptionBytes(['orders', 'bills']))).toEqual(['orders', 'bills'])
    expect(topicsOf(Uint8Array.of(0, 0, 127))).toBeNull()
  })
})

describe('an assignment', () => {
  it('of no bytes can be read where it is a consumer’s, and is left alone where it is not', () => {
    expect([...readableAssignment('consumer', new Uint8Array(0))]).toEqual(NOTHING)
    expect([...readableAssignment('connect', new Uint8Array(0))]).toEqual([])
    expect([...readableAssignment(null, new Uint8Array(0))]).toEqual([])
    expect([...readableAssignment('consumer', Uint8Array.of(1))]).toEqual([1])
  })
})
