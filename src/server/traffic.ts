/**
 * What went through a server since it was opened: requests by API, how long they took, errors they were answered, bytes.
 * Nothing is kept of a request but that it was counted.
 */
import type { Clock } from '../model/clock.ts'
import type { Api } from '../wire/api.ts'
import { observed } from './observed.ts'
import { eachError } from './response-errors.ts'
import type { Interceptor } from './router.ts'

/** Upper bounds of a request's time, in seconds: from what is answered at once to what waits for the longest poll. */
export const BUCKETS_S = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const
const MS_PER_S = 1_000

/** Of one API. */
export class ApiTraffic {
  readonly name: string
  requests: number = 0
  secondsSum: number = 0
  /** How many took as long as a bucket's bound, and longer than the one before; at last those beyond all. */
  readonly buckets: number[] = new Array<number>(BUCKETS_S.length + 1).fill(0)
  /** By Kafka's error code. */
  readonly errors: Map<number, number> = new Map()
  /** Whose connection was closed instead of an answer. */
  failed: number = 0

  constructor(name: string) {
    this.name = name
  }

  record(tookMs: number): void {
    const seconds = Math.max(tookMs, 0) / MS_PER_S
    this.requests++
    this.secondsSum += seconds
    const at = BUCKETS_S.findIndex((bound) => seconds <= bound)
    const bucket = at < 0 ? BUCKETS_S.length : at
    this.buckets[bucket] = (this.buckets[bucket] as number) + 1
  }
}

export class Traffic {
  receivedBytes: number = 0
  sentBytes: number = 0
  readonly #apis = new Map<number, ApiTraffic>()

  apis(): Iterable<ApiTraffic> {
    return this.#apis.values()
  }

  #of({ key, name }: Api): ApiTraffic {
    let traffic = this.#apis.get(key)
    if (traffic === undefined) {
      traffic = new ApiTraffic(name)
      this.#apis.set(key, traffic)
    }
    return traffic
  }

  /** Counts what passes. */
  interceptor(clock: Pick<Clock, 'monotonic'>): Interceptor {
    return ({ handler: { api } }, next) => {
      const traffic = this.#of(api)
      return observed(next, clock, (response, error, durationMs) => {
        traffic.record(durationMs)
        if (error !== undefined) traffic.failed++
        else if (response !== null) {
          eachError(api, response, (code) => traffic.errors.set(code, (traffic.errors.get(code) ?? 0) + 1))
        }
      })
    }
  }
}
