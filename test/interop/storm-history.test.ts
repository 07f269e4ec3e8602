/** A storm's history convicts: what clients say that goes well is sound, and each fault is found under its name. */
import { describe, expect, it } from 'vitest'
import { checkHistory } from '../../src/testing/history-checks.ts'
import type { DriverEvent } from './driver.ts'
import { historyOf } from './storm-history.ts'

const VALUES = ['a-0', 'a-1', 'a-2']

function sent(at: number, value: string): DriverEvent {
  return { sending: value, key: 'k', at }
}

function produced(at: number, offset: number): DriverEvent {
  return { produced: { partition: 0, offset, value: VALUES[offset] }, at }
}

function got(at: number, offset: number): DriverEvent {
  const record = { topic: 'orders', partition: 0, offset, key: 'k', value: VALUES[offset] ?? null }
  return { record, at }
}

function commit(at: number, offset: number): DriverEvent[] {
  const place = { partition: 0, offset }
  return [
    { committing: place, at },
    { committed: place, at: at + 1 },
  ]
}

const PRODUCER = [...VALUES.map((value, i) => sent(i, value)), ...VALUES.map((_, i) => produced(10 + i, i))]
const READER = [got(20, 0), got(21, 1), ...commit(22, 2), got(30, 2), ...commit(31, 3)]

function kindsOf(
  members: readonly (readonly DriverEvent[])[],
  values: readonly string[] = VALUES,
  killed: readonly number[] = [],
): string[] {
  const history = historyOf({
    seed: 1,
    topic: 'orders',
    group: 'shippers',
    producers: [{ events: PRODUCER, wasKilled: false }],
    members: members.map((events, i) => ({ events, wasKilled: killed.includes(i) })),
    scans: [
      { partition: 0, high: values.length, records: values.map((value, offset) => ({ offset, value })) },
    ],
  })
  return [...new Set(checkHistory(history).map(({ kind }) => kind))]
}

describe('the history of a storm', () => {
  it('is sound where each record was there once and was committed', () => {
    expect(kindsOf([READER])).toEqual([])
  })

  it('is sound where a member was killed with records in its hands, and another one was given them again', () => {
    const heir = [got(40, 0), got(41, 1), ...commit(42, 2), got(43, 2), ...commit(44, 3)]
    expect(kindsOf([[got(20, 0), got(21, 1)], heir], VALUES, [0])).toEqual([])
  })

  it('takes a commit without an answer for one that took effect, if nothing came again', () => {
    const killed = [got(20, 0), got(21, 1), { committing: { partition: 0, offset: 2 }, at: 22 }]
    expect(kindsOf([killed, [got(40, 2), ...commit(41, 3)]], VALUES, [0])).toEqual([])
  })

  it('convicts a loss', () => {
    expect(kindsOf([READER.slice(0, 4)], VALUES.slice(0, 2))).toContain('unseen')
  })

  it('convicts a record that is there twice', () => {
    expect(kindsOf([READER], [...VALUES, 'a-0'])).toContain('duplicate')
  })

  it('convicts a record that no member was given', () => {
    expect(kindsOf([READER.slice(0, 4)])).toContain('unaccounted-record')
  })

  it('convicts a record that comes again although it was committed', () => {
    expect(kindsOf([[...READER, got(50, 1), ...commit(51, 3)]])).toContain('bad-redelivery')
  })

  it('convicts two members that have one partition', () => {
    expect(
      kindsOf([
        [got(20, 0), got(24, 2), ...commit(40, 3)],
        [got(22, 1), ...commit(23, 2)],
      ]),
    ).toContain('concurrent-ownership')
  })
})
