import { describe, expect, it } from 'vitest'
import type { AnomalyKind } from '../../src/testing/history-anomalies.ts'
import { type Case, Script } from './script.ts'

const CASES: { [kind in AnomalyKind]?: { found: Case[]; sound: Case[] } } = {
  'commit-regressed': {
    found: [
      {
        title: 'from one commit to the next',
        write: (s) => {
          s.log(3)
          s.group({})
          s.acked(0, 1, 2)
          s.committed(3)
          s.committed(2)
        },
      },
      {
        title: 'across a crash',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(0, 1)
          s.committed(2)
          s.crashed()
          s.committed(1)
        },
      },
      {
        title: 'a commit from before a replay, below where it put the cursor',
        write: (s) => {
          s.log(3)
          s.group({})
          s.acked(0)
          s.reset(2)
          s.committed(1)
        },
      },
    ],
    sound: [
      {
        title: 'the same again',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.committed(1)
          s.committed(1)
        },
      },
      {
        title: 'a replay puts it back',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(0, 1)
          s.committed(2)
          s.reset(0)
          s.acked(0)
          s.committed(1)
        },
      },
      {
        title: 'a commit while a replay is on its way',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(0, 1)
          s.committed(1)
          const reset = s.history.reset('g', 't', 0)
          s.committed(0)
          s.history.resetOk(reset, 0)
        },
      },
    ],
  },
  'commit-beyond-end': {
    found: [
      {
        title: 'past a send that failed',
        write: (s) => {
          s.log(1)
          s.failed('x')
          s.group({})
          s.acked(0)
          s.committed(2)
        },
      },
      {
        title: 'past the last record',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(0, 1)
          s.committed(3)
        },
      },
      {
        title: 'before a replay',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.committed(2)
          s.reset(0)
        },
      },
    ],
    sound: [
      {
        title: 'at the end',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(0, 1)
          s.committed(2)
        },
      },
      {
        title: 'past a send of unknown outcome',
        write: (s) => {
          s.log(1)
          s.unknown('v1')
          s.group({})
          s.acked(0)
          s.committed(2)
        },
      },
      {
        title: 'past a marker that a scan showed',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.committed(2)
          s.scanned(0, 2, [0, 'v0'])
        },
      },
      {
        title: 'where everything was evicted',
        write: (s) => {
          s.group({})
          s.committed(5)
          s.evicted(5)
        },
      },
    ],
  },
  'commit-past-unsettled': {
    found: [
      {
        title: 'committed while the handler ran',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          s.committed(1)
          s.settle('ack', delivery)
        },
      },
      {
        title: 'committed while a retry was due',
        write: (s) => {
          s.log(2)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.acked(1)
          s.committed(2)
          s.settle('ack', s.deliver(0, { attempt: 2 }))
        },
      },
      {
        title: 'committed before the last attempt failed',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 1 })
          const delivery = s.deliver(0)
          s.committed(1)
          s.settle('nack', delivery)
          s.deadLettered(0)
        },
      },
    ],
    sound: [
      {
        title: 'committed after the ack',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.committed(1)
        },
      },
      {
        title: 'acked below where a replay, on its way meanwhile, put the cursor',
        write: (s) => {
          s.log(2)
          s.group({})
          s.committed(0)
          const reset = s.history.reset('g', 't', 0)
          const delivery = s.deliver(0)
          s.history.resetOk(reset, 2)
          s.settle('ack', delivery)
        },
      },
      {
        title: 'committed up to what is in flight',
        write: (s) => {
          s.log(2)
          s.group({})
          const delivery = s.deliver(1)
          s.acked(0)
          s.committed(1)
          s.settle('ack', delivery)
        },
      },
      {
        title: 'at most once, committed before the handler ran',
        write: (s) => {
          s.log(1)
          s.group({ guarantee: 'at-most-once' })
          s.committed(1)
          s.settle('ack', s.deliver(0))
        },
      },
    ],
  },
  'unaccounted-record': {
    found: [
      {
        title: 'acked while a replay was on its way that failed, and not after the next one',
        write: (s) => {
          s.log(1)
          s.group({})
          const reset = s.history.reset('g', 't', 0)
          s.acked(0)
          s.history.fail(reset)
          s.reset(0)
          s.drained()
        },
      },
      {
        title: 'committed past a record that was never delivered',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(1)
          s.committed(2)
        },
      },
      {
        title: 'drained with a record that was never delivered',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(0)
          s.drained()
        },
      },
      {
        title: 'drained with a delivery in flight',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deliver(0)
          s.drained()
        },
      },
      {
        title: 'committed past a delivery that a crash cut off',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deliver(0)
          s.committed(1)
          s.crashed()
        },
      },
      {
        title: 'rejected, and in no dead-letter topic',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('reject', s.deliver(0))
          s.committed(1)
        },
      },
      {
        title: 'out of attempts, and in no dead-letter topic',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 1 })
          s.settle('expire', s.deliver(0))
          s.drained()
        },
      },
      {
        title: 'settled before a replay, and not again after it',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.reset(0)
          s.drained()
        },
      },
      {
        title: 'acked while the replay before the last one was on its way, and not again',
        write: (s) => {
          s.log(1)
          s.group({})
          const reset = s.history.reset('g', 't', 0)
          s.acked(0)
          s.history.resetOk(reset, 0)
          s.reset(0)
          s.drained()
        },
      },
      {
        title: 'at most once, never delivered since a replay, and no crash since',
        write: (s) => {
          s.log(1)
          s.group({ guarantee: 'at-most-once' })
          s.crashed()
          s.reset(0)
          s.committed(1)
        },
      },
      {
        title: 'evicted from under a group that holds the log',
        write: (s) => {
          s.log(1)
          s.group({ lossless: true })
          s.evicted(1)
        },
      },
      {
        title: 'dropped from a group that holds the log',
        write: (s) => {
          s.log(2)
          s.group({ lossless: true })
          s.dropped(0, 0)
          s.acked(1)
          s.committed(2)
        },
      },
      {
        title: 'at most once, never delivered and no crash',
        write: (s) => {
          s.log(1)
          s.group({ guarantee: 'at-most-once' })
          s.committed(1)
        },
      },
      {
        title: 'in flight when drops were counted around it',
        write: (s) => {
          s.log(3)
          s.group({})
          s.deliver(1)
          s.dropped(0, 2, 2)
          s.drained()
        },
      },
    ],
    sound: [
      {
        title: 'acked, dead-lettered, dropped, expired and pending',
        write: (s) => {
          s.log(6)
          s.group({ attempts: 1 })
          s.acked(0)
          s.settle('nack', s.deliver(1))
          s.deadLettered(1)
          s.dropped(2, 3)
          s.committed(4)
          s.evicted(5)
        },
      },
      {
        title: 'dead-lettered without a delivery',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deadLettered(0)
          s.drained()
        },
      },
      {
        title: 'sent after the group was drained',
        write: (s) => {
          s.group({})
          s.drained()
          s.log(1)
        },
      },
      {
        title: 'below where the cursor was put',
        write: (s) => {
          s.log(2)
          s.group({}, 1)
          s.acked(1)
          s.drained()
        },
      },
      {
        title: 'a record of unknown outcome that nobody saw',
        write: (s) => {
          s.unknown('v0')
          s.group({})
          s.committed(1)
          s.drained()
        },
      },
      {
        title: 'a replay of which nobody knows whether it happened',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.history.unknown(s.history.reset('g', 't', 0))
          s.drained()
        },
      },
      {
        title: 'at most once, a crash between commit and handler',
        write: (s) => {
          s.log(1)
          s.group({ guarantee: 'at-most-once' })
          s.committed(1)
          s.crashed()
        },
      },
      {
        title: 'a group whose place was never recorded',
        write: (s) => {
          s.log(2)
          s.acked(1)
          s.drained()
        },
      },
    ],
  },
  'drops-miscounted': {
    found: [
      {
        title: 'fewer than have no outcome',
        write: (s) => {
          s.log(3)
          s.group({})
          s.dropped(0, 2, 2)
          s.drained()
        },
      },
      {
        title: 'more than have no outcome',
        write: (s) => {
          s.log(3)
          s.group({})
          s.acked(1)
          s.dropped(0, 2, 3)
        },
      },
    ],
    sound: [
      {
        title: 'one in the range was in flight and settled',
        write: (s) => {
          s.log(3)
          s.group({})
          const delivery = s.deliver(1)
          s.dropped(0, 2, 2)
          s.settle('ack', delivery)
          s.drained()
        },
      },
      {
        title: 'ranges that overlap, and a record that waited for a retry',
        write: (s) => {
          s.log(5)
          s.group({ attempts: 5 })
          s.settle('nack', s.deliver(0))
          s.acked(2)
          s.dropped(3, 4, 1)
          s.dropped(0, 3, 3)
          s.drained()
        },
      },
      {
        title: 'records of unknown outcome may have been among them',
        write: (s) => {
          s.sent('v0', 0)
          s.unknown('v1')
          s.group({})
          s.dropped(0, 1, 2)
        },
      },
      {
        title: 'an ack that a crash forgot, before the record was dropped',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.crashed()
          s.dropped(0, 0)
        },
      },
      {
        title: 'an ack that a crash forgot, before the record came again, waited and was dropped',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.crashed()
          s.settle('nack', s.deliver(0, { attempt: 2 }))
          s.dropped(0, 0)
        },
      },
      {
        title: 'an ack from before a replay that was on its way',
        write: (s) => {
          s.log(1)
          s.group({})
          const reset = s.history.reset('g', 't', 0)
          s.acked(0)
          s.history.resetOk(reset, 0)
          s.dropped(0, 0)
          s.drained()
        },
      },
      {
        title: 'what lies in the range may still come while the group is not drained',
        write: (s) => {
          s.log(3)
          s.group({})
          s.dropped(0, 2, 2)
        },
      },
      {
        title: 'a replay begins the count anew',
        write: (s) => {
          s.log(2)
          s.group({})
          s.dropped(0, 1)
          s.reset(0)
          s.acked(0, 1)
          s.drained()
        },
      },
    ],
  },
  'bad-redelivery': {
    found: [
      {
        title: 'after a dead letter that was written after a crash',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('reject', s.deliver(0))
          s.crashed()
          s.deadLettered(0)
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'after a dead letter that came while it waited',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.deadLettered(0)
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'after an ack',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'after a dead letter',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 1 })
          s.settle('nack', s.deliver(0))
          s.deadLettered(0)
          s.deliver(0)
        },
      },
      {
        title: 'after the last attempt failed',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 2 })
          s.settle('nack', s.deliver(0))
          s.settle('nack', s.deliver(0, { attempt: 2 }))
          s.deliver(0, { attempt: 3 })
        },
      },
      {
        title: 'to the member that still has it',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deliver(0)
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'after an ack and a clean close, which flushes',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.closed()
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'after a crash, of what was committed',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.committed(1)
          s.crashed()
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'a retry from before a replay, below where it put the cursor',
        write: (s) => {
          s.log(2)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.reset(1)
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'after an ack and a replay that failed',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.history.fail(s.history.reset('g', 't', 0))
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'at most once, after a failure',
        write: (s) => {
          s.log(1)
          s.group({ guarantee: 'at-most-once' })
          s.settle('nack', s.deliver(0))
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'at most once, after a crash',
        write: (s) => {
          s.log(1)
          s.group({ guarantee: 'at-most-once' })
          s.deliver(0)
          s.crashed()
          s.deliver(0, { attempt: 2 })
        },
      },
    ],
    sound: [
      {
        title: 'after a nack, an expiry, a release and a leave',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 3 })
          s.settle('nack', s.deliver(0))
          s.settle('expire', s.deliver(0, { attempt: 2 }))
          s.settle('release', s.deliver(0, { attempt: 3 }))
          s.deliver(0, { attempt: 3 })
          s.left()
          s.settle('ack', s.deliver(0, { to: 'n', attempt: 3 }))
        },
      },
      {
        title: 'after a crash, of what was acked and not committed',
        write: (s) => {
          s.log(2)
          s.group({})
          s.acked(0, 1)
          s.committed(1)
          s.crashed()
          s.settle('ack', s.deliver(1, { attempt: 2 }))
        },
      },
      {
        title: 'after a replay',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.reset(0)
          s.acked(0)
        },
      },
      {
        title: 'around a replay that was on its way, whichever side it belongs to',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.acked(0)
          const reset = s.history.reset('g', 't', 0)
          const doubtful = s.deliver(0)
          s.settle('nack', doubtful)
          s.history.resetOk(reset, 0)
          s.settle('ack', s.deliver(0))
          s.acked(1)
        },
      },
      {
        title: 'after a replay that failed, of what came while it was on its way',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.settle('nack', s.deliver(0))
          const reset = s.history.reset('g', 't', 0)
          s.settle('nack', s.deliver(0, { attempt: 2 }))
          s.history.fail(reset)
          s.settle('ack', s.deliver(0, { attempt: 3 }))
          s.acked(1)
        },
      },
      {
        title: 'after a leave, of what the member had elsewhere when a replay fenced one partition',
        write: (s) => {
          s.group({})
          s.deliver(0)
          s.deliver(0, { partition: 1 })
          s.reset(0)
          s.left()
          s.deliver(0, { partition: 1 })
        },
      },
      {
        title: 'another group',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.history.deliver('h', 'm', { topic: 't', partition: 0, offset: 0, value: 'v0', key: null }, 1)
        },
      },
    ],
  },
  'attempts-out-of-bounds': {
    found: [
      {
        title: 'counted for a restart that came before the first delivery',
        write: (s) => {
          s.log(1)
          s.group({})
          s.crashed()
          s.settle('nack', s.deliver(0))
          s.deliver(0, { attempt: 3 })
        },
      },
      {
        title: 'not counted after the second nack',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.settle('nack', s.deliver(0, { attempt: 2 }))
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'the first is not 1',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'the first after a replay is not 1, although the process was restarted before it',
        write: (s) => {
          s.log(1)
          s.group({})
          s.crashed()
          s.reset(0)
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'not counted after a nack',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.deliver(0)
        },
      },
      {
        title: 'counted after a leave',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deliver(0)
          s.left()
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'not counted after a crash',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deliver(0)
          s.crashed()
          s.deliver(0)
        },
      },
      {
        title: 'counted twice for one crash',
        write: (s) => {
          s.log(1)
          s.group({})
          s.deliver(0)
          s.crashed()
          s.deliver(0, { attempt: 3 })
        },
      },
      {
        title: 'more than the group allows, by a crash',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 2 })
          s.settle('nack', s.deliver(0))
          s.deliver(0, { attempt: 2 })
          s.crashed()
          s.deliver(0, { attempt: 3 })
        },
      },
      {
        title: 'kept across a replay',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.reset(0)
          s.deliver(0, { attempt: 2 })
        },
      },
      {
        title: 'dead-lettered with attempts left',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 3 })
          s.settle('nack', s.deliver(0))
          s.deadLettered(0)
        },
      },
    ],
    sound: [
      {
        title: 'counted after an expiry, up to what the group allows',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 2 })
          s.settle('expire', s.deliver(0))
          s.settle('nack', s.deliver(0, { attempt: 2 }))
          s.deadLettered(0)
        },
      },
      {
        title: 'counted after a crash, remembered or not',
        write: (s) => {
          s.log(2)
          s.group({})
          for (const offset of [0, 1]) {
            s.settle('nack', s.deliver(offset))
            s.settle('nack', s.deliver(offset, { attempt: 2 }))
          }
          s.crashed()
          s.settle('ack', s.deliver(0, { attempt: 2 }))
          s.settle('ack', s.deliver(1, { attempt: 4 }))
        },
      },
      {
        title: 'after a crash, of a record whose first delivery was never recorded',
        write: (s) => {
          s.log(1)
          s.group({})
          s.crashed()
          s.settle('ack', s.deliver(0, { attempt: 2 }))
        },
      },
      {
        title: 'after a clean close, counted or not',
        write: (s) => {
          s.log(2)
          s.group({})
          s.deliver(0)
          s.deliver(1)
          s.closed()
          s.settle('ack', s.deliver(0), s.deliver(1, { attempt: 2 }))
        },
      },
      {
        title: 'rejected at the first attempt',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 3 })
          s.settle('reject', s.deliver(0))
          s.deadLettered(0)
        },
      },
      {
        title: 'the dead letter shows before its rejection returns',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 3 })
          const delivery = s.deliver(0)
          s.deadLettered(0)
          s.settle('reject', delivery)
          s.drained()
        },
      },
      {
        title: 'dead-lettered after a crash that ended the last attempt',
        write: (s) => {
          s.log(1)
          s.group({ attempts: 2 })
          s.settle('nack', s.deliver(0))
          s.deliver(0, { attempt: 2 })
          s.crashed()
          s.deadLettered(0)
          s.drained()
        },
      },
      {
        title: 'dead-lettered at any attempt where the group does not say how many',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.deadLettered(0)
          s.drained()
        },
      },
    ],
  },
  'dead-lettered-twice': {
    found: [
      {
        title: 'in one go',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('reject', s.deliver(0))
          s.deadLettered(0)
          s.deadLettered(0)
        },
      },
      {
        title: 'across a crash',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('reject', s.deliver(0))
          s.deadLettered(0)
          s.crashed()
          s.settle('reject', s.deliver(0, { attempt: 2 }))
          s.deadLettered(0)
        },
      },
    ],
    sound: [
      {
        title: 'once per replay',
        write: (s) => {
          s.log(1)
          s.group({})
          for (const _ of [1, 2]) {
            s.settle('reject', s.deliver(0))
            s.deadLettered(0)
            s.reset(0)
          }
          s.settle('ack', s.deliver(0))
        },
      },
      {
        title: 'two records',
        write: (s) => {
          s.log(2)
          s.group({})
          s.settle('reject', s.deliver(0), s.deliver(1))
          s.deadLettered(0)
          s.deadLettered(1)
        },
      },
    ],
  },
  'concurrent-ownership': {
    found: [
      {
        title: 'two members have one record',
        write: (s) => {
          s.log(1)
          s.group({ order: 'partition' })
          s.deliver(0, { to: 'm' })
          s.deliver(0, { to: 'n', attempt: 2 })
        },
      },
      {
        title: 'two members have one partition',
        write: (s) => {
          s.log(2)
          s.group({ ownership: 'partition' })
          s.deliver(0, { to: 'm' })
          s.deliver(1, { to: 'n' })
        },
      },
      {
        title: 'two members have one partition, after a replay and a leave',
        write: (s) => {
          s.log(2)
          s.group({ ownership: 'partition' })
          s.deliver(0, { to: 'm' })
          s.reset(0)
          s.left('m')
          s.deliver(0, { to: 'n' })
          s.deliver(1, { to: 'o' })
        },
      },
      {
        title: 'two members have one partition, in order of it',
        write: (s) => {
          s.log(2)
          s.group({ ownership: 'partition', order: 'partition' })
          s.deliver(0, { to: 'm' })
          s.deliver(1, { to: 'n' })
        },
      },
    ],
    sound: [
      {
        title: 'one after the other',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('expire', s.deliver(0, { to: 'm' }))
          s.deliver(0, { to: 'n', attempt: 2 })
        },
      },
      {
        title: 'the partition changes hands once nothing is in flight',
        write: (s) => {
          s.log(3)
          s.group({ ownership: 'partition' })
          const delivery = s.deliver(0, { to: 'm' })
          s.deliver(1, { to: 'm' })
          s.settle('ack', delivery)
          s.left('m')
          s.deliver(1, { to: 'n' })
          s.deliver(2, { to: 'n' })
        },
      },
      {
        title: 'a crash empties all hands',
        write: (s) => {
          s.log(1)
          s.group({ ownership: 'partition', order: 'partition' })
          s.deliver(0, { to: 'm' })
          s.crashed()
          s.deliver(0, { to: 'n', attempt: 2 })
        },
      },
      {
        title: 'a replay fences what was in hands',
        write: (s) => {
          s.log(1)
          s.group({ ownership: 'partition', order: 'partition' })
          s.deliver(0, { to: 'm' })
          s.reset(0)
          s.deliver(0, { to: 'n' })
        },
      },
      {
        title: 'single records are shared',
        write: (s) => {
          s.log(2)
          s.group({})
          s.deliver(0, { to: 'm' })
          s.deliver(1, { to: 'n' })
        },
      },
      {
        title: 'two partitions',
        write: (s) => {
          s.group({ ownership: 'partition' })
          s.deliver(0, { to: 'm' })
          s.deliver(1, { to: 'n', partition: 1 })
        },
      },
    ],
  },
  'order-violation': {
    found: [
      {
        title: 'two records in flight after a replay that failed',
        write: (s) => {
          s.log(3)
          s.group({ order: 'partition' })
          s.settle('nack', s.deliver(0))
          const reset = s.history.reset('g', 't', 0)
          s.settle('ack', s.deliver(0, { attempt: 2 }))
          s.history.fail(reset)
          s.deliver(1)
          s.deliver(2)
        },
      },
      {
        title: 'two records of a partition in flight',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.deliver(0)
          s.deliver(1)
        },
      },
      {
        title: 'two records of a key in flight',
        write: (s) => {
          s.log(2)
          s.group({ order: 'key' })
          s.deliver(0, { key: 'k' })
          s.deliver(1, { key: 'k' })
        },
      },
      {
        title: 'a later record overtakes one that waits for a retry',
        write: (s) => {
          s.log(2)
          s.group({ order: 'key', lossless: true })
          s.settle('nack', s.deliver(0, { key: 'k' }))
          s.deliver(1, { key: 'k' })
        },
      },
      {
        title: 'a later record overtakes one that a member left behind, and that was not dropped',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.deliver(0)
          s.left()
          s.acked(1)
          s.acked(0)
        },
      },
      {
        title: 'later records overtake one that waits, which is said once',
        write: (s) => {
          s.log(3)
          s.group({ order: 'partition' })
          s.settle('nack', s.deliver(0))
          s.acked(1, 2)
          s.settle('ack', s.deliver(0, { attempt: 2 }))
        },
      },
      {
        title: 'a later record overtook one that waited, before a replay',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition', lossless: true })
          s.settle('nack', s.deliver(0))
          s.acked(1)
          s.reset(0)
        },
      },
      {
        title: 'an earlier record comes after a later one',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.acked(1)
          s.acked(0)
        },
      },
      {
        title: 'an earlier record comes after a later one, after a crash',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.acked(0, 1)
          s.crashed()
          s.settle('ack', s.deliver(1, { attempt: 2 }))
          s.settle('ack', s.deliver(0, { attempt: 2 }))
        },
      },
      {
        title: 'two batches of a partition in flight',
        write: (s) => {
          s.log(3)
          s.group({ order: 'partition' })
          s.deliver(0, { batch: 1 })
          s.deliver(1, { batch: 1 })
          s.deliver(2, { batch: 2 })
        },
      },
      {
        title: 'a batch leaves out what the one before gave back',
        write: (s) => {
          s.log(4)
          s.group({ order: 'partition' })
          const batch = [0, 1, 2].map((offset) => s.deliver(offset, { batch: 1 }))
          s.settle('release', ...batch)
          s.deliver(0, { batch: 2 })
          s.deliver(2, { batch: 2 })
        },
      },
    ],
    sound: [
      {
        title: 'the one overtaken had been dropped while it waited, and then came a replay',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.settle('nack', s.deliver(0))
          s.acked(1)
          s.dropped(0, 0)
          s.reset(0)
          s.acked(0, 1)
        },
      },
      {
        title: 'a retry holds back its own key and nothing else',
        write: (s) => {
          s.log(4)
          s.group({ order: 'key' })
          s.settle('nack', s.deliver(0, { key: 'k' }))
          s.settle('ack', s.deliver(1, { key: 'l' }), s.deliver(2))
          s.settle('ack', s.deliver(0, { key: 'k', attempt: 2 }))
          s.settle('ack', s.deliver(3, { key: 'k' }))
        },
      },
      {
        title: 'records without a key are free',
        write: (s) => {
          s.log(2)
          s.group({ order: 'key' })
          s.deliver(1)
          s.deliver(0)
        },
      },
      {
        title: 'one key in two partitions is two lanes',
        write: (s) => {
          s.group({ order: 'key' })
          s.deliver(0, { key: 'k' })
          s.deliver(1, { key: 'k', partition: 1 })
        },
      },
      {
        title: 'no order is asked for',
        write: (s) => {
          s.log(2)
          s.group({ order: 'none' })
          s.deliver(1)
          s.deliver(0)
        },
      },
      {
        title: 'a batch is in flight as one, and its rest comes again in order',
        write: (s) => {
          s.log(4)
          s.group({ order: 'partition' })
          const [first, second, third] = [0, 1, 2].map((offset) => s.deliver(offset, { batch: 1 }))
          s.settle('ack', first as number)
          s.settle('nack', second as number)
          s.settle('release', third as number)
          s.deliver(1, { batch: 2, attempt: 2 })
          s.deliver(2, { batch: 2 })
          s.deliver(3, { batch: 2 })
        },
      },
      {
        title: 'the one overtaken had been dropped while it waited, as is told later',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition', attempts: 3 })
          s.settle('nack', s.deliver(0))
          s.acked(1)
          s.dropped(0, 0)
          s.drained()
        },
      },
      {
        title: 'the one before it failed for good',
        write: (s) => {
          s.log(3)
          s.group({ order: 'partition', attempts: 1 })
          s.settle('nack', s.deliver(0))
          s.settle('reject', s.deliver(1))
          s.acked(2)
          s.deadLettered(0)
          s.deadLettered(1)
          s.drained()
        },
      },
      {
        title: 'the one before it was dead-lettered while it waited',
        write: (s) => {
          s.log(2)
          s.group({ order: 'partition' })
          s.settle('nack', s.deliver(0))
          s.deadLettered(0)
          s.acked(1)
        },
      },
    ],
  },
  'stale-settle': {
    found: [
      {
        title: 'settled twice',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          s.settle('ack', delivery)
          s.settle('nack', delivery)
        },
      },
      {
        title: 'acked after it expired',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          s.settle('expire', delivery)
          s.settle('ack', delivery)
        },
      },
      {
        title: 'acked by the first member after the second got it',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          s.left()
          s.deliver(0, { to: 'n' })
          s.settle('ack', delivery)
        },
      },
      {
        title: 'acked across a replay',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          s.reset(0)
          s.settle('ack', delivery)
        },
      },
      {
        title: 'acked across a crash',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          s.crashed()
          s.settle('ack', delivery)
        },
      },
      {
        title: 'dead-lettered after the ack',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.deadLettered(0)
        },
      },
      {
        title: 'acked after the dead letter',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          s.deadLettered(0)
          s.settle('ack', delivery)
        },
      },
    ],
    sound: [
      {
        title: 'acked while a replay is on its way',
        write: (s) => {
          s.log(1)
          s.group({})
          const delivery = s.deliver(0)
          const reset = s.history.reset('g', 't', 0)
          s.settle('ack', delivery)
          s.history.resetOk(reset, 0)
          s.acked(0)
        },
      },
      {
        title: 'each of two deliveries settled once',
        write: (s) => {
          s.log(1)
          s.group({})
          s.settle('nack', s.deliver(0))
          s.settle('ack', s.deliver(0, { attempt: 2 }))
        },
      },
      {
        title: 'dead-lettered across a crash that forgot the ack',
        write: (s) => {
          s.log(1)
          s.group({})
          s.acked(0)
          s.crashed()
          s.deadLettered(0)
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
