/** One producer and one or four readers that each see every record; synchronous handlers. */
import {
  eventEmitter,
  eventEmitter3,
  eventEmitterWithRing,
  mittEmitter,
  mqEmitter,
} from '../contenders/emitters.ts'
import { odradek, odradekBursts, odradekPublish } from '../contenders/odradek.ts'
import { numbers, orders } from '../contenders/payload.ts'
import { rxjsAsap, rxjsAsync } from '../contenders/subjects.ts'
import { race } from '../race.ts'
import { atLeast, type Scenario, speed } from '../scenario.ts'
import { ordered } from '../tally.ts'

const everyRecord = ordered((i) => i)

export const oneToOne: Scenario = {
  name: 'one-to-one',
  title: 'One producer, one reader, numbers; synchronous handler, at-least-once, 65,536 records retained',
  moved: 'records',
  rows: [
    speed('odradek', 'mqemitter', atLeast(4)),
    speed('odradek', 'EventEmitter', atLeast(0.35)),
    speed('odradek', 'EventEmitter + ring'),
    speed('odradek', 'eventemitter3'),
    speed('odradek', 'mitt'),
    speed('odradek', 'rxjs asap'),
    speed('odradek, bursts', 'EventEmitter'),
    speed('odradek, publish()', 'EventEmitter'),
  ],
  sample: race({
    expectation: everyRecord,
    contenders: [
      odradek(1, numbers),
      odradekBursts(1, numbers),
      odradekPublish(1, numbers),
      mqEmitter(1, numbers),
      eventEmitter(1, numbers),
      eventEmitterWithRing(1, numbers),
      eventEmitter3(1, numbers),
      mittEmitter(1, numbers),
      rxjsAsap(1, numbers),
    ],
  }),
}

export const oneToOneObjects: Scenario = {
  name: 'one-to-one-objects',
  title: 'The same with a fresh object of three fields for each record',
  moved: 'records',
  rows: [
    speed('odradek', 'mqemitter', atLeast(1.5)),
    speed('odradek', 'EventEmitter + ring', atLeast(0.5)),
    speed('odradek', 'EventEmitter'),
    speed('odradek, bursts', 'EventEmitter + ring'),
    speed('odradek, publish()', 'EventEmitter + ring'),
  ],
  sample: race({
    expectation: everyRecord,
    contenders: [
      odradek(1, orders),
      odradekBursts(1, orders),
      odradekPublish(1, orders),
      mqEmitter(1, orders),
      eventEmitterWithRing(1, orders),
      eventEmitter(1, orders),
    ],
  }),
}

export const oneToFour: Scenario = {
  name: 'one-to-four',
  title: 'One producer, four readers that each see every record (four deliveries a record), numbers',
  moved: 'records',
  rows: [
    speed('odradek', 'mqemitter', atLeast(5)),
    speed('odradek', 'rxjs async', atLeast(5)),
    speed('odradek', 'rxjs asap', atLeast(5)),
    speed('odradek', 'EventEmitter'),
    speed('odradek, bursts', 'EventEmitter'),
  ],
  sample: race({
    expectation: everyRecord,
    contenders: [
      odradek(4, numbers),
      odradekBursts(4, numbers),
      mqEmitter(4, numbers),
      rxjsAsync(4, numbers),
      rxjsAsap(4, numbers),
      eventEmitter(4, numbers),
    ],
  }),
}
