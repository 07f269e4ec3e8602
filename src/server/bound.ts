/**
 * How many of something there may be, where looking how many there are takes time: what came since they were counted
 * last is added, what went is not taken off. So the sum is never too low. When it reaches the bound they are counted
 * again, but only now and then: whoever runs into the bound again and again costs a comparison.
 *
 *   counted │ under way │ came since │ ... room ... │ max
 */
import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/views.ts'
import { Refusal } from './admin-errors.ts'

/** Between two counts. What went may be noticed so much later. */
const COUNTED_EVERY_MS = 10_000

export interface Bounded {
  /** Of which option; for people. */
  readonly option: string
  readonly max: number
  /** How many there are now. */
  count(): number
}

export class Bound {
  readonly #bounded: Bounded
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #logger: Logger
  #atMost = Number.POSITIVE_INFINITY
  #countedAt = Number.NEGATIVE_INFINITY
  /** Being made, and not there to be counted. */
  #underWay = 0

  constructor(bounded: Bounded, clock: Pick<Clock, 'monotonic'>, logger: Logger) {
    this.#bounded = bounded
    this.#clock = clock
    this.#logger = logger
  }

  /** Whether so many more may come. If so, they count. */
  admits(more: number): boolean {
    if (more <= 0) return true
    const { max } = this.#bounded
    if (this.#atMost + more > max) {
      this.#recount()
      if (this.#atMost + more > max) return false
    }
    this.#atMost += more
    return true
  }

  /** `make`, where so many more may come. @throws Refusal POLICY_VIOLATION */
  async making<T>(more: number, make: () => Promise<T>): Promise<T> {
    if (!this.admits(more)) throw new Refusal('POLICY_VIOLATION', this.reason)
    this.#underWay += more
    try {
      return await make()
    } finally {
      this.#underWay -= more
    }
  }

  get reason(): string {
    const { option, max } = this.#bounded
    return `there are as many as this server allows: ${option} is ${max}`
  }

  #recount(): void {
    const now = this.#clock.monotonic()
    if (now - this.#countedAt < COUNTED_EVERY_MS) return
    this.#countedAt = now
    const counted = this.#bounded.count()
    this.#atMost = counted + this.#underWay
    if (this.#atMost >= this.#bounded.max)
      this.#logger.warn({ counted }, `clients are refused: ${this.reason}`)
  }
}
