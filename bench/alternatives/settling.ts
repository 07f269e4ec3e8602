/**
 * What to do with the promise of an `async` handler. One `then` with two callbacks is the floor; an async
 * wrapper makes a second promise, and going back through a scheduled drain costs a second microtask.
 */
import { type Contender, race, type Session } from '../race.ts'
import { type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

type Handler = (value: number) => Promise<void>
type Settled = () => void

/** Hands out 0, 1, 2, … one at a time; `settle` calls back when the handler's promise did. */
function contender(
  name: string,
  settle: (handler: Handler, value: number, settled: Settled) => void,
): Contender {
  return {
    name,
    open(): Session {
      const tally = new Tally()
      const handler = async (value: number): Promise<void> => tally.add(value)
      let next = 0
      let count = 0
      const handOut = (): void => {
        if (next < count) settle(handler, next++, handOut)
      }
      return {
        tallies: [tally],
        run(records) {
          next = 0
          count = records
          handOut()
        },
      }
    },
  }
}

function raise(error: unknown): void {
  throw error
}

const resolved = Promise.resolve()

export const settling: Scenario = {
  name: 'settling',
  title: 'Settling the promise of an `async` handler that is resolved already',
  moved: 'records',
  rows: [
    speed('then, same callbacks', 'async wrapper'),
    speed('then, same callbacks', 'then, fresh callbacks'),
    speed('then, same callbacks', 'then, scheduled drain'),
  ],
  sample: race({
    expectation: ordered((i) => i),
    contenders: [
      contender('then, same callbacks', (handler, value, settled) => {
        handler(value).then(settled, raise)
      }),
      contender('then, fresh callbacks', (handler, value, settled) => {
        handler(value).then(
          () => settled(),
          (error) => raise(error),
        )
      }),
      contender('then, scheduled drain', (handler, value, settled) => {
        handler(value).then(() => void resolved.then(settled), raise)
      }),
      contender('async wrapper', async (handler, value, settled) => {
        await handler(value)
        settled()
      }),
    ],
  }),
}
