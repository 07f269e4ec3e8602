/** fastq, the queue with workers: callbacks and promises, one worker or several. */
import fastq from 'fastq'
import type { Contender, Session } from '../race.ts'
import { Tally } from '../tally.ts'
import type { Payload } from './payload.ts'

/** Of 4, 16, 64, 256, 1,024 and 16,384 the one at which its promises are fastest. */
export const FASTQ_BURST = 256

const ignore = (): void => {}

/** Callbacks. A worker that is done at once makes the push a synchronous call. */
export function fastqCallbacks<T>(workers: number, { make, idOf }: Payload<T>): Contender {
  return {
    name: 'fastq callbacks',
    open(): Session {
      const tally = new Tally()
      const queue = fastq<null, T>((value: T, done: fastq.done) => {
        tally.addAnyOrder(idOf(value))
        done(null)
      }, workers)
      return {
        tallies: [tally],
        run(count) {
          for (let i = 0; i < count; i++) queue.push(make(i), ignore)
        },
      }
    },
  }
}

/** Promises, pushed in bursts; each burst is drained before the next. */
export function fastqPromises<T>(
  name: string,
  workers: number,
  burst: number,
  { make, idOf }: Payload<T>,
): Contender {
  return {
    name,
    open(): Session {
      const tally = new Tally()
      const queue = fastq.promise<null, T, void>(async (value: T) => {
        tally.addAnyOrder(idOf(value))
      }, workers)
      return {
        tallies: [tally],
        async run(count) {
          for (let i = 0; i < count; ) {
            for (const end = Math.min(count, i + burst); i < end; i++) void queue.push(make(i))
            await queue.drained()
          }
        },
      }
    },
  }
}

/** Promises, awaited one by one. */
export function fastqAwait<T>({ make, idOf }: Payload<T>): Contender {
  return {
    name: 'fastq.promise, one by one',
    open(): Session {
      const tally = new Tally()
      const queue = fastq.promise<null, T, void>(async (value: T) => {
        tally.add(idOf(value))
      }, 1)
      return {
        tallies: [tally],
        async run(count) {
          for (let i = 0; i < count; i++) await queue.push(make(i))
        },
      }
    },
  }
}
