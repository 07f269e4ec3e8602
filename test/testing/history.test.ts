import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { History } from '../../src/testing/history.ts'
import { ANOMALY_KINDS } from '../../src/testing/history-anomalies.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'
import { Script } from './script.ts'

describe('History', () => {
  it('numbers events in the order they were recorded, and completions name their start', () => {
    const history = new History()
    const send = history.send('p', 't', 'a', 'k')
    const poll = history.poll('r')
    history.sendOk(send, { partition: 1, offset: 7 })
    history.pollOk(poll, [{ topic: 't', partition: 1, offset: 7, value: 'a' }])
    expect(history.events).toEqual([
      { type: 'send', index: 0, process: 'p', topic: 't', value: 'a', key: 'k' },
      { type: 'poll', index: 1, process: 'r' },
      { type: 'send-ok', index: 2, of: 0, position: { partition: 1, offset: 7 } },
      {
        type: 'poll-ok',
        index: 3,
        of: 1,
        records: [{ topic: 't', partition: 1, offset: 7, value: 'a' }],
      },
    ])
  })

  it('keeps of a position only what it needs, so that the result of a publish can be given', () => {
    const history = new History()
    const published = { partition: 0, offset: 3, duplicate: true as const }
    history.sendOk(history.send('p', 't', 'a'), published)
    expect(history.events[1]).toEqual({
      type: 'send-ok',
      index: 1,
      of: 0,
      position: { partition: 0, offset: 3 },
    })
  })

  it('refuses an end of something else than was started', () => {
    const history = new History()
    const send = history.send('p', 't', 'a')
    expect(() => history.pollOk(send, [])).toThrow('event 0 is no poll')
    expect(() => history.settle(send, 'ack')).toThrow('event 0 is no deliver')
    expect(() => history.fail(17)).toThrow('event 17 is no send or poll or scan or reset')
    expect(history.events).toHaveLength(1)
  })

  it('comes back from JSON with its seed, and is judged the same', () => {
    const script = new Script()
    script.log(3)
    script.group({ attempts: 2, order: 'key' })
    script.polled('r', [0, 'v0'], [2, 'v2'])
    script.acked(0)
    script.committed(3)
    const { events } = script.history
    const seeded = History.fromJSON({ seed: 42, events })
    const copy = History.fromJSON(JSON.parse(JSON.stringify(seeded)))
    expect(copy.seed).toBe(42)
    expect(copy.events).toEqual(events)
    expect(checkHistory(copy)).toEqual(checkHistory(script.history))
    expect(checkHistory(copy).map(({ kind }) => kind)).toEqual([
      'lost-write',
      'unaccounted-record',
      'unaccounted-record',
    ])
  })

  it('has no seed unless it is given one', () => {
    expect(new History().seed).toBeNull()
    expect(new History({ seed: 'abc' }).seed).toBe('abc')
    expect(History.fromJSON(new History().toJSON()).seed).toBeNull()
  })

  it('refuses JSON whose events are out of their places', () => {
    const history = new History()
    history.crash()
    history.close()
    const events = [...history.events].reverse()
    expect(() => History.fromJSON({ seed: null, events })).toThrow('event 0 of the history says')
  })
})

describe('checkHistory', () => {
  it('finds nothing in an empty history', () => {
    expect(checkHistory(new History())).toEqual([])
  })

  it('refuses a history that ends something twice', () => {
    const history = new History()
    const send = history.send('p', 't', 'a')
    history.fail(send)
    history.unknown(send)
    expect(() => checkHistory(history)).toThrow('event 2 ends event 0 a second time')
  })

  it('says where an anomaly is, which value it concerns, and which events contradict each other', () => {
    const history = new History()
    history.sendOk(history.send('p', 't', 'a'), { partition: 2, offset: 0 })
    history.unknown(history.send('p', 't', 'b'))
    const records = [{ topic: 't', partition: 2, offset: 0, value: 'b' }]
    history.pollOk(history.poll('r'), records)
    expect(checkHistory(history)).toEqual([
      {
        kind: 'inconsistent-offsets',
        message: 'offset 0 held a and b',
        topic: 't',
        partition: 2,
        offset: 0,
        value: 'b',
        group: null,
        events: [history.events[1], history.events[5]],
      },
    ])
  })

  it('names the group of an anomaly of a group', () => {
    const script = new Script()
    script.log(1)
    script.group({})
    script.acked(0)
    const again = script.deliver(0, { attempt: 2 })
    const [anomaly] = checkHistory(script.history)
    expect(anomaly).toMatchObject({ kind: 'bad-redelivery', group: 'g', topic: 't', offset: 0, value: 'v0' })
    expect(anomaly?.events.map(({ index }) => index)).toEqual([again - 1, again])
  })

  it('says what became of records that are not accounted for', () => {
    const script = new Script()
    script.log(4)
    script.group({})
    script.deliver(0)
    script.settle('nack', script.deliver(1))
    script.settle('reject', script.deliver(2))
    script.drained()
    expect(checkHistory(script.history).map(({ message }) => message)).toEqual([
      'offset 0 is still in flight',
      'offset 1 was given back, and never came again',
      'offset 2 failed for good, and there is no dead letter',
      'offset 3 was never delivered',
    ])
  })

  it('says whether a reader went wrong within one read or from one to the next', () => {
    const script = new Script()
    script.log(6)
    script.polled('other', [0, 'v0'], [1, 'v1'], [2, 'v2'], [3, 'v3'], [4, 'v4'], [5, 'v5'])
    script.polled('r', [0, 'v0'])
    script.polled('r', [2, 'v2'], [1, 'v1'])
    script.polled('r', [1, 'v1'])
    script.polled('r', [2, 'v2'], [4, 'v4'])
    expect(checkHistory(script.history).map(({ message }) => message)).toEqual([
      'a reader at offset 3 went back to 1, within one read',
      'a reader passed over offset 1, from one read to the next',
      'a reader at offset 2 went back to 1, from one read to the next',
      'a reader passed over offset 3, within one read',
    ])
  })

  it('knows what a reader had passed before it went back', () => {
    const script = new Script()
    script.log(4)
    script.polled('r', [0, 'v0'], [3, 'v3'])
    script.polled('r', [0, 'v0'])
    expect(checkHistory(script.history).map(({ kind, offset }) => [kind, offset])).toEqual([
      ['lost-write', 1],
      ['lost-write', 2],
      ['nonmonotonic-read', 0],
    ])
  })

  it('says which attempt should have come', () => {
    const script = new Script()
    script.log(2)
    script.group({})
    script.settle('nack', script.deliver(0), script.deliver(1))
    script.deliver(0)
    script.crashed()
    script.deliver(1)
    expect(checkHistory(script.history).map(({ message }) => message)).toEqual([
      'attempt 1 at offset 0, where 2 is next',
      'attempt 1 at offset 1, where 2 to 3 is next',
    ])
  })

  it('shows both sides of an aborted read', () => {
    const script = new Script()
    script.failed('a')
    script.polled('r', [0, 'a'])
    const [anomaly] = checkHistory(script.history)
    expect(anomaly?.events.map(({ type }) => type)).toEqual(['fail', 'poll-ok'])
  })

  it('orders anomalies by the events that show them', () => {
    const script = new Script()
    script.polled('r', [1, 'a'], [0, 'b'])
    script.sent('c', 1)
    expect(script.kinds()).toEqual([
      'nonmonotonic-read',
      'unsent-read',
      'unsent-read',
      'inconsistent-offsets',
    ])
    const indexes = checkHistory(script.history).map(({ events }) => events.at(-1)?.index ?? -1)
    expect(indexes).toEqual([...indexes].sort((a, b) => a - b))
  })

  it('reports a bounded number of each kind, in full where it is asked to', () => {
    const script = new Script()
    for (let i = 0; i < 150; i++) script.failed(i)
    script.polled('r', ...Array.from({ length: 150 }, (_, i): [number, number] => [i, i]))
    expect(checkHistory(script.history)).toHaveLength(100)
    expect(checkHistory(script.history, { maxPerKind: 7 })).toHaveLength(7)
    expect(checkHistory(script.history, { maxPerKind: 1_000 })).toHaveLength(150)
  })

  it('takes time in proportion to the history, sound or not', () => {
    const records = 30_000
    const script = new Script()
    script.group({ order: 'partition', attempts: 3 })
    script.log(records)
    for (let offset = 0; offset < records; offset++) {
      const delivery = script.deliver(offset)
      script.settle(offset % 3 === 0 ? 'nack' : 'ack', delivery)
      script.sent(`v${offset}`, records + offset)
    }
    script.drained()
    const kinds = new Set(script.kinds())
    expect(kinds).toEqual(new Set(['duplicate', 'order-violation', 'unaccounted-record']))
  })

  it('has a hand-made history for every kind of anomaly', () => {
    const cases = ['history-log.test.ts', 'history-groups.test.ts']
      .map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'))
      .join('')
    const missing = ANOMALY_KINDS.filter((kind) => !new RegExp(`^ {2}'?${kind}'?: \\{$`, 'm').test(cases))
    expect(missing).toEqual([])
  })

  it('defines every kind of anomaly, and every event, where they are documented', () => {
    const read = (file: string) => readFileSync(new URL(`../../src/testing/${file}`, import.meta.url), 'utf8')
    const kinds = read('history-anomalies.ts')
    const events = read('history.ts')
    expect(ANOMALY_KINDS.filter((kind) => !kinds.includes(` * | \`${kind}\` |`))).toEqual([])
    const types = [...events.matchAll(/(?:Indexed|Completion|AtPartition|AtCursor)<'([a-z-]+)'>/g)]
    expect(types.length).toBeGreaterThan(20)
    expect(types.map(([, type]) => type).filter((type) => !events.includes(` * | \`${type}\` |`))).toEqual([])
  })
})
