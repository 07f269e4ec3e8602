/** What callers subscribe with: a function, or an object with a method, made one thing to call. */
import { invalid } from '../core/settings.ts'

/** A subscriber in either form, its argument left open: a delivery or a batch. */
export type AnySubscriber = ((work: never) => unknown) | { onMessage(work: never): unknown }

export interface Handler {
  readonly call: (work: never) => unknown
  readonly isObject: boolean
}

/** @throws OdradekError INVALID_ARGUMENT */
export function handlerOf(subscriber: AnySubscriber): Handler {
  if (typeof subscriber === 'function') return { call: subscriber, isObject: false }
  if (typeof subscriber === 'object' && subscriber !== null && typeof subscriber.onMessage === 'function') {
    return { call: (work) => subscriber.onMessage(work), isObject: true }
  }
  throw invalid('a subscriber is a function, or an object with a method onMessage')
}
