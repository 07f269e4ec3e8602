/**
 * A publish schedules one drain, which must run soon and not inside the publish. A reaction on a promise that is
 * resolved already is the cheapest way to get a microtask; `queueMicrotask` makes an async resource for each.
 */
import { type Contender, race, type Session } from '../race.ts'
import { type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

const resolved = Promise.resolve()

/** Each drain schedules the next. */
function contender(name: string, schedule: (drain: () => void) => void): Contender {
  return {
    name,
    open(): Session {
      const tally = new Tally()
      let left = 0
      let drained = 0
      const drain = (): void => {
        tally.add(drained++)
        if (--left > 0) schedule(drain)
      }
      return {
        tallies: [tally],
        run(count) {
          left = count
          drained = 0
          schedule(drain)
        },
      }
    },
  }
}

export const drainScheduling: Scenario = {
  name: 'drain-scheduling',
  title: 'Scheduling one drain after another',
  moved: 'drains',
  rows: [
    speed('resolved.then', 'queueMicrotask'),
    speed('resolved.then', 'process.nextTick'),
    speed('resolved.then', 'setImmediate'),
  ],
  sample: race({
    expectation: ordered((i) => i),
    contenders: [
      contender('resolved.then', (drain) => void resolved.then(drain)),
      contender('queueMicrotask', (drain) => queueMicrotask(drain)),
      contender('process.nextTick', (drain) => process.nextTick(drain)),
      contender('setImmediate', (drain) => void setImmediate(drain)),
    ],
  }),
}
