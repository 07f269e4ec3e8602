import { describe, expect, it } from 'vitest'
import type { AnomalyKind } from '../../src/testing/history-anomalies.ts'
import { type Case, Script } from './script.ts'

const CASES: { [kind in AnomalyKind]?: { found: Case[]; sound: Case[] } } = {
  'inconsistent-offsets': {
    found: [
      {
        title: 'a reader saw another value than the sender was told',
        write: (s) => {
          s.sent('a', 0)
          s.unknown('b')
          s.polled('r', [0, 'b'])
        },
      },
      {
        title: 'two senders were told the same offset',
        write: (s) => {
          s.sent('a', 0)
          s.sent('b', 0)
        },
      },
    ],
    sound: [
      {
        title: 'the same offset in another partition',
        write: (s) => {
          s.sent('a', 0)
          s.sent('b', 0, { partition: 1 })
          s.polled('r', [0, 'a'])
        },
      },
    ],
  },
  duplicate: {
    found: [
      {
        title: 'one send is read at two offsets',
        write: (s) => {
          s.sent('a', 0)
          s.polled('r', [0, 'a'], [1, 'a'])
        },
      },
      {
        title: 'a retry under the same id was written again',
        write: (s) => {
          s.sent('a', 0)
          s.sent('a', 1, { partition: 1 })
        },
      },
    ],
    sound: [
      {
        title: 'a retry under the same id is answered with the first position',
        write: (s) => {
          s.unknown('a')
          s.sent('b', 1)
          s.sent('a', 0)
          s.polled('r', [0, 'a'], [1, 'b'])
        },
      },
    ],
  },
  'lost-write': {
    found: [
      {
        title: 'the first record of a scan',
        write: (s) => {
          s.log(2)
          s.scanned(0, 2, [1, 'v1'])
        },
      },
      {
        title: 'an acknowledged record that a reader passed',
        write: (s) => {
          s.log(3)
          s.polled('r', [0, 'v0'], [2, 'v2'])
        },
      },
      {
        title: 'an acknowledged record below the high watermark of a scan',
        write: (s) => {
          s.log(3)
          s.scanned(0, 3, [0, 'v0'], [1, 'v1'])
        },
      },
      {
        title: 'passed by one of two readers that met half-way',
        write: (s) => {
          s.log(6)
          s.polled('r', [0, 'v0'], [1, 'v1'])
          s.polled('other', [1, 'v1'], [2, 'v2'], [4, 'v4'], [5, 'v5'])
        },
      },
    ],
    sound: [
      {
        title: 'the same read by another reader that did see it is no loss',
        write: (s) => {
          s.log(3)
          s.polled('r', [0, 'v0'], [1, 'v1'], [2, 'v2'])
        },
      },
      {
        title: 'evicted before anybody read it',
        write: (s) => {
          s.log(3)
          s.polled('r', [0, 'v0'])
          s.evicted(2)
          s.polled('r', [2, 'v2'])
        },
      },
      {
        title: 'before the first record that anybody read',
        write: (s) => {
          s.log(3)
          s.polled('r', [2, 'v2'])
        },
      },
      {
        title: 'between two readers that did not meet',
        write: (s) => {
          s.log(3)
          s.polled('r', [0, 'v0'])
          s.polled('other', [2, 'v2'])
        },
      },
      {
        title: 'a send that failed, or of which nobody knows',
        write: (s) => {
          s.failed('a')
          s.unknown('b')
          s.scanned(0, 0)
        },
      },
    ],
  },
  unseen: {
    found: [
      {
        title: 'acknowledged before the last scan, and again after it',
        write: (s) => {
          s.sent('a', 0)
          s.scanned(0, 0)
          s.sent('a', 0)
        },
      },
      {
        title: 'acknowledged before the last scan began, and beyond its end',
        write: (s) => {
          s.log(2)
          s.scanned(0, 1, [0, 'v0'])
        },
      },
      {
        title: 'acknowledged without a position, and in no partition',
        write: (s) => {
          s.sent('a', 0)
          s.history.sendOk(s.history.send('p', 't', 'b'), null)
          s.scanned(0, 1, [0, 'a'])
        },
      },
    ],
    sound: [
      {
        title: 'acknowledged after the last scan began',
        write: (s) => {
          s.sent('a', 0)
          const scan = s.history.scan('t', 0)
          s.sent('b', 1)
          s.history.scanOk(scan, 0, 1, [{ offset: 0, value: 'a' }])
        },
      },
      {
        title: 'nobody scanned',
        write: (s) => s.log(2),
      },
      {
        title: 'the scan came to nothing',
        write: (s) => {
          s.log(2)
          s.history.fail(s.history.scan('t', 0))
        },
      },
      {
        title: 'read by somebody after the scan',
        write: (s) => {
          s.history.sendOk(s.history.send('p', 't', 'b'), null)
          s.scanned(0, 0)
          s.polled('r', [0, 'b'])
        },
      },
      {
        title: 'acknowledged without a position, while a partition was not scanned since',
        write: (s) => {
          s.sent('a', 0, { partition: 1 })
          s.history.sendOk(s.history.send('p', 't', 'b'), null)
          s.scanned(0, 0)
        },
      },
      {
        title: 'acknowledged without a position, and perhaps evicted since',
        write: (s) => {
          s.history.sendOk(s.history.send('p', 't', 'b'), null)
          s.evicted(1)
          s.scanned(1, 1)
        },
      },
      {
        title: 'evicted since',
        write: (s) => {
          s.log(2)
          s.evicted(2)
          s.scanned(2, 2)
        },
      },
    ],
  },
  'aborted-read': {
    found: [
      {
        title: 'a value whose only send failed is read',
        write: (s) => {
          s.failed('a')
          s.polled('r', [0, 'a'])
        },
      },
      {
        title: 'a value is read before its send fails, and others pass over it',
        write: (s) => {
          s.sent('b', 0)
          const send = s.history.send('p', 't', 'a')
          s.polled('dirty', [0, 'b'], [1, 'a'])
          s.history.fail(send)
          s.sent('c', 2)
          s.polled('r', [0, 'b'], [2, 'c'])
        },
      },
    ],
    sound: [
      {
        title: 'a value whose send is of unknown outcome is read',
        write: (s) => {
          s.unknown('a')
          s.polled('r', [0, 'a'])
        },
      },
      {
        title: 'a value is read whose second send succeeded',
        write: (s) => {
          s.failed('a')
          s.sent('a', 0)
          s.polled('r', [0, 'a'])
        },
      },
      {
        title: 'a value is read while its send has not ended',
        write: (s) => {
          s.history.send('p', 't', 'a')
          s.polled('r', [0, 'a'])
        },
      },
    ],
  },
  'unsent-read': {
    found: [
      {
        title: 'a value that was read before it was sent, and after',
        write: (s) => {
          s.polled('r', [0, 'a'])
          s.sent('a', 0)
          s.polled('other', [0, 'a'])
        },
      },
      {
        title: 'a value that nobody sent',
        write: (s) => {
          s.sent('a', 0)
          s.polled('r', [0, 'a'], [1, 'b'])
        },
      },
      {
        title: 'a value that was sent later',
        write: (s) => {
          s.polled('r', [0, 'a'])
          s.sent('a', 0)
        },
      },
    ],
    sound: [
      {
        title: 'a topic in which no sends were recorded',
        write: (s) => s.polled('r', [0, 'a']),
      },
      {
        title: 'a value whose send began before the read, and ended after it',
        write: (s) => {
          const send = s.history.send('p', 't', 'a')
          s.polled('r', [0, 'a'])
          s.history.sendOk(send, { partition: 0, offset: 0 })
        },
      },
    ],
  },
  'skipped-read': {
    found: [
      {
        title: 'within one poll',
        write: (s) => {
          s.log(3)
          s.polled('other', [0, 'v0'], [1, 'v1'], [2, 'v2'])
          s.polled('r', [0, 'v0'], [2, 'v2'])
        },
      },
      {
        title: 'from one poll to the next',
        write: (s) => {
          s.log(3)
          s.polled('r', [0, 'v0'])
          s.polled('r', [2, 'v2'])
          s.polled('other', [1, 'v1'])
        },
      },
      {
        title: 'right after a seek',
        write: (s) => {
          s.log(3)
          s.polled('other', [0, 'v0'], [1, 'v1'], [2, 'v2'])
          s.history.seek('r', 't', 0, 1)
          s.polled('r', [2, 'v2'])
        },
      },
      {
        title: 'by a scan',
        write: (s) => {
          s.log(2)
          s.polled('other', [0, 'v0'], [1, 'v1'])
          s.scanned(0, 2, [0, 'v0'])
        },
      },
      {
        title: 'by a scan whose end went back',
        write: (s) => {
          s.log(2)
          s.polled('other', [0, 'v0'], [1, 'v1'])
          s.scanned(0, 1, [0, 'v0'])
        },
      },
      {
        title: 'a poll that failed did not move its reader',
        write: (s) => {
          s.log(3)
          s.polled('other', [0, 'v0'], [1, 'v1'], [2, 'v2'])
          s.polled('r', [0, 'v0'])
          s.history.fail(s.history.poll('r'))
          s.polled('r', [2, 'v2'])
        },
      },
    ],
    sound: [
      {
        title: 'a poll of unknown outcome may have moved its reader',
        write: (s) => {
          s.log(3)
          s.polled('other', [0, 'v0'], [1, 'v1'], [2, 'v2'])
          s.polled('r', [0, 'v0'])
          s.history.unknown(s.history.poll('r'))
          s.polled('r', [2, 'v2'])
        },
      },
      {
        title: 'an offset that holds no record, such as a transaction marker',
        write: (s) => {
          s.sent('a', 0)
          s.sent('b', 2)
          s.polled('r', [0, 'a'], [2, 'b'])
          s.scanned(0, 4, [0, 'a'], [2, 'b'])
        },
      },
      {
        title: 'a record evicted before the reader came',
        write: (s) => {
          s.log(3)
          s.polled('other', [0, 'v0'], [1, 'v1'], [2, 'v2'])
          s.polled('r', [0, 'v0'])
          s.evicted(2)
          s.polled('r', [2, 'v2'])
        },
      },
      {
        title: 'a reader that went elsewhere on purpose',
        write: (s) => {
          s.log(3)
          s.polled('other', [0, 'v0'], [1, 'v1'], [2, 'v2'])
          s.polled('r', [0, 'v0'])
          s.history.seek('r', 't', 0, 2)
          s.polled('r', [2, 'v2'])
        },
      },
      {
        title: 'a record appended and read by others while a scan ran',
        write: (s) => {
          s.log(1)
          const scan = s.history.scan('t', 0)
          s.sent('v1', 1)
          s.polled('other', [1, 'v1'])
          s.history.scanOk(scan, 0, 1, [{ offset: 0, value: 'v0' }])
        },
      },
    ],
  },
  'nonmonotonic-read': {
    found: [
      {
        title: 'back within one poll',
        write: (s) => {
          s.log(2)
          s.polled('r', [1, 'v1'], [0, 'v0'])
        },
      },
      {
        title: 'the same record again in the next poll',
        write: (s) => {
          s.log(2)
          s.polled('r', [0, 'v0'], [1, 'v1'])
          s.polled('r', [1, 'v1'])
        },
      },
      {
        title: 'to before a seek',
        write: (s) => {
          s.log(2)
          s.history.seek('r', 't', 0, 1)
          s.polled('r', [0, 'v0'])
        },
      },
    ],
    sound: [
      {
        title: 'back by a seek',
        write: (s) => {
          s.log(2)
          s.polled('r', [0, 'v0'], [1, 'v1'])
          s.history.seek('r', 't', 0, 0)
          s.polled('r', [0, 'v0'], [1, 'v1'])
        },
      },
      {
        title: 'by another reader',
        write: (s) => {
          s.log(2)
          s.polled('r', [0, 'v0'], [1, 'v1'])
          s.polled('other', [0, 'v0'])
        },
      },
    ],
  },
  'nonmonotonic-send': {
    found: [
      {
        title: 'one process, one send after the other',
        write: (s) => {
          s.sent('a', 1)
          s.sent('b', 0)
        },
      },
      {
        title: 'two processes, the second having begun after the first ended',
        write: (s) => {
          s.sent('a', 1, { by: 'p1' })
          s.sent('b', 0, { by: 'p2' })
        },
      },
      {
        title: 'one process, overlapping calls, against their order',
        write: (s) => {
          const a = s.history.send('p', 't', 'a')
          const b = s.history.send('p', 't', 'b')
          s.history.sendOk(b, { partition: 0, offset: 0 })
          s.history.sendOk(a, { partition: 0, offset: 1 })
        },
      },
    ],
    sound: [
      {
        title: 'two processes that overlapped',
        write: (s) => {
          const a = s.history.send('p1', 't', 'a')
          const b = s.history.send('p2', 't', 'b')
          s.history.sendOk(b, { partition: 0, offset: 0 })
          s.history.sendOk(a, { partition: 0, offset: 1 })
        },
      },
      {
        title: 'one process, overlapping calls, answered late',
        write: (s) => {
          const a = s.history.send('p', 't', 'a')
          const b = s.history.send('p', 't', 'b')
          s.history.sendOk(b, { partition: 0, offset: 1 })
          s.history.sendOk(a, { partition: 0, offset: 0 })
        },
      },
      {
        title: 'two partitions',
        write: (s) => {
          s.sent('a', 1)
          s.sent('b', 0, { partition: 1 })
        },
      },
    ],
  },
  'restart-read-regressed': {
    found: [
      {
        title: 'a record at the end, scanned before a crash, is gone after it',
        write: (s) => {
          s.log(2)
          s.scanned(0, 2, [0, 'v0'], [1, 'v1'])
          s.crashed()
          s.scanned(0, 1, [0, 'v0'])
        },
      },
      {
        title: 'a record in the middle, handed to a member before a close, is gone after it',
        write: (s) => {
          s.log(3)
          s.deliver(1)
          s.closed()
          s.scanned(0, 3, [0, 'v0'], [2, 'v2'])
        },
      },
      {
        title: 'a record of unknown outcome that was read',
        write: (s) => {
          s.unknown('v0')
          s.polled('r', [0, 'v0'])
          s.crashed()
          s.scanned(0, 0)
        },
      },
    ],
    sound: [
      {
        title: 'a scan after a crash extends the one before',
        write: (s) => {
          s.log(1)
          s.unknown('v1')
          s.scanned(0, 1, [0, 'v0'])
          s.crashed()
          s.scanned(0, 2, [0, 'v0'], [1, 'v1'])
        },
      },
      {
        title: 'an unacknowledged record that nobody read is gone after a crash',
        write: (s) => {
          s.log(1)
          s.history.send('p', 't', 'v1')
          s.scanned(0, 1, [0, 'v0'])
          s.crashed()
          s.scanned(0, 1, [0, 'v0'])
        },
      },
      {
        title: 'retention moved on',
        write: (s) => {
          s.log(2)
          s.scanned(0, 2, [0, 'v0'], [1, 'v1'])
          s.crashed()
          s.evicted(1)
          s.scanned(1, 2, [1, 'v1'])
        },
      },
    ],
  },
}

describe.each(Object.entries(CASES))('%s', (kind, { found, sound }) => {
  it.each(found)('is found: $title', ({ write }) => {
    const script = new Script()
    write(script)
    expect(script.kinds()).toEqual([kind])
  })

  it.each(sound)('is not found: $title', ({ write }) => {
    const script = new Script()
    write(script)
    expect(script.kinds()).toEqual([])
  })
})
