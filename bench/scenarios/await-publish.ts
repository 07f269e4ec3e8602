/** A producer that waits for each record to be accepted before it makes the next. */
import { emitteryAwait } from '../contenders/emitters.ts'
import { odradekAwait } from '../contenders/odradek.ts'
import { numbers } from '../contenders/payload.ts'
import { fastqAwait } from '../contenders/queues.ts'
import { race } from '../race.ts'
import { atLeast, type Scenario, speed } from '../scenario.ts'
import { ordered } from '../tally.ts'

export const awaitPublish: Scenario = {
  name: 'await-publish',
  title: '`await publish()` for each record, one reader, numbers',
  moved: 'records',
  rows: [
    speed('odradek, await publish()', 'fastq.promise, one by one', atLeast(1)),
    speed('odradek, await publish()', 'emittery', atLeast(5)),
  ],
  sample: race({
    expectation: ordered((i) => i),
    contenders: [odradekAwait(1, numbers), fastqAwait(numbers), emitteryAwait(1, numbers)],
  }),
}
