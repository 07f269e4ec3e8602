/** What consumers say to one another: byte for byte, and of any version. */
import { describe, expect, it } from 'vitest'
import {
  assignedTopics,
  assignmentBytes,
  subscribedTopics,
  subscriptionBytes,
} from '../../src/wire/consumer-protocol.ts'
import { codeThrown } from '../support/world.ts'

describe('a subscription', () => {
  it('names its topics', () => {
    const bytes = subscriptionBytes(['orders', 'größe'])
    expect([...bytes.subarray(0, 14)]).toEqual([
      0,
      0,
      0,
      0,
      0,
      2,
      0,
      6,
      ...new TextEncoder().encode('orders'),
    ])
    expect(subscribedTopics(bytes)).toEqual(['orders', 'größe'])
  })

  it('says what its member has, in the version that can', () => {
    const owned = [{ topic: 'a', partitions: [7] }]
    expect([...subscriptionBytes(['a'], owned)]).toEqual([
      ...[0, 3, 0, 0, 0, 1, 0, 1, 97, 255, 255, 255, 255],
      ...[0, 0, 0, 1, 0, 1, 97, 0, 0, 0, 1, 0, 0, 0, 7],
      ...[255, 255, 255, 255, 255, 255],
    ])
  })

  it('of a later version is read as far as all versions are alike', () => {
    // Version 3: owned partitions, generation and rack follow the user data.
    const later = [0, 3, 0, 0, 0, 1, 0, 1, 97, 0, 0, 0, 2, 9, 9, 0, 0, 0, 0, 0, 0, 0, 5, 255, 255]
    expect(subscribedTopics(Uint8Array.from(later))).toEqual(['a'])
  })

  it.each([
    ['nothing', []],
    ['less than it says', [0, 0, 0, 0, 0, 1, 0, 9, 97]],
    ['more topics than could follow', [0, 0, 127, 255, 255, 255]],
  ])('of %s cannot be told', (_, bytes) => {
    expect(codeThrown(() => subscribedTopics(Uint8Array.from(bytes)))).toBe('PROTOCOL_ERROR')
  })
})

describe('an assignment', () => {
  it('names partitions by topic', () => {
    expect([...assignmentBytes([{ topic: 'a', partitions: [0, 258] }])]).toEqual([
      ...[0, 0, 0, 0, 0, 1, 0, 1, 97],
      ...[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 2],
      ...[255, 255, 255, 255],
    ])
  })

  it('that is larger than a buffer is whole', () => {
    const partitions = Array.from({ length: 50_000 }, (_, i) => i)
    const bytes = assignmentBytes([{ topic: 'a', partitions }])
    expect(bytes).toHaveLength(2 + 4 + 3 + 4 + 4 * partitions.length + 4)
    expect([...bytes.subarray(-8)]).toEqual([0, 0, 195, 79, 255, 255, 255, 255])
  })

  it('is read as it was written, and is nothing where there are no bytes', () => {
    const topics = [{ topic: 'a', partitions: [0, 1] }]
    expect(assignedTopics(assignmentBytes(topics))).toEqual(topics)
    expect(assignedTopics(new Uint8Array(0))).toEqual([])
  })
})
