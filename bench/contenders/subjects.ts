/**
 * RxJS: a Subject whose observers run on a scheduler, which is its way to decouple. `asap` is a microtask, `async`
 * is a timer per notification. What is scheduled is kept in an array that is searched, so small bursts are its
 * best case by far; the producer goes on when its burst has arrived, or nearly so where a timer is in between.
 */
import { asapScheduler, asyncScheduler, observeOn, type SchedulerLike, Subject } from 'rxjs'
import { type Contender, type Session, turn } from '../race.ts'
import { Tally } from '../tally.ts'
import type { Payload } from './payload.ts'

/** Of 1, 16, 64, 256 and 1,024 the one at which both schedulers are fastest. */
export const RXJS_BURST = 16

/** How a producer waits for a scheduler. */
interface Wait {
  readonly scheduler: SchedulerLike
  /** Records that may be under way when it goes on. */
  readonly underWay: number
  pause(): Promise<void>
}

const resolved = Promise.resolve()

export function rxjsAsap<T>(readers: number, payload: Payload<T>): Contender {
  const wait = { scheduler: asapScheduler, underWay: 0, pause: () => resolved }
  return onScheduler('rxjs asap', wait, readers, payload)
}

export function rxjsAsync<T>(readers: number, payload: Payload<T>): Contender {
  const wait = { scheduler: asyncScheduler, underWay: RXJS_BURST * 16, pause: turn }
  return onScheduler('rxjs async', wait, readers, payload)
}

function onScheduler<T>(
  name: string,
  { scheduler, underWay, pause }: Wait,
  readers: number,
  { make, idOf }: Payload<T>,
): Contender {
  return {
    name,
    open(): Session {
      const subject = new Subject<T>()
      const tallies: Tally[] = []
      for (let i = 0; i < readers; i++) {
        const tally = new Tally()
        subject.pipe(observeOn(scheduler)).subscribe((value) => tally.add(idOf(value)))
        tallies.push(tally)
      }
      const last = tallies.at(-1) as Tally
      return {
        tallies,
        async run(count) {
          for (let i = 0; i < count; ) {
            for (const end = Math.min(count, i + RXJS_BURST); i < end; i++) subject.next(make(i))
            while (last.count < i - underWay) await pause()
          }
        },
        close: () => subject.complete(),
      }
    },
  }
}
