/** Who is at the other end, before and after it has shown that. */
import { describe, expect, it } from 'vitest'
import type { Node } from '../../src/server/cluster.ts'
import { type Door, Session } from '../../src/server/session.ts'

const node: Node = { id: 0, advertised: new Map() }
const door = (authenticates: boolean): Door => ({ listener: 'PLAINTEXT', node, authenticates })

describe('a session', () => {
  it('is anonymous, and may do everything, where nobody has to show who he is', () => {
    const session = new Session('10.0.0.1', door(false), () => {})
    expect([session.authenticated, session.principal]).toEqual([true, 'User:ANONYMOUS'])
  })

  it('is anonymous, and may do nothing, until it has shown who it is', () => {
    const told: string[] = []
    const session = new Session('10.0.0.1', door(true), () => told.push('authenticated'))
    expect([session.authenticated, session.principal]).toEqual([false, 'User:ANONYMOUS'])
    // Nobody is to be told; it stays what it is.
    session.refuse()
    expect(session.authenticated).toBe(false)
    session.authenticate('User:alice')
    expect([session.authenticated, session.principal, told]).toEqual([true, 'User:alice', ['authenticated']])
  })

  it('tells who closes its connection that it is refused, and who waits for it that it has ended', () => {
    const told: string[] = []
    const session = new Session(
      '10.0.0.1',
      door(true),
      () => {},
      () => told.push('refused'),
    )
    session.refuse()
    expect([told, session.signal.aborted]).toEqual([['refused'], false])
    session.end()
    expect(session.signal.aborted).toBe(true)
  })
})
