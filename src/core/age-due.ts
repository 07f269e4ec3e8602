/** When the age of a topic's records is looked at: again and again, as often as its retention makes sense of. */
import type { CoreContext } from './context.ts'
import { Due } from './due-queue.ts'
import type { Topic } from './topic.ts'

/** How often age is looked at: this share of the age, within these bounds. */
const AGE_CHECK_SHARE = 0.1
const AGE_CHECK_MIN_MS = 10
const AGE_CHECK_MAX_MS = 60_000
/** Looked at on average, at most: or a topic of ten thousand that keeps nothing would keep the process busy. */
const PARTITIONS_PER_MS = 10

export class AgeDue extends Due {
  readonly #ctx: CoreContext
  readonly #topic: Topic

  constructor(ctx: CoreContext, topic: Topic) {
    super()
    this.#ctx = ctx
    this.#topic = topic
  }

  arm(): void {
    const { ageMs } = this.#topic.retention
    if (ageMs === Number.POSITIVE_INFINITY) return
    const leastMs = Math.max(AGE_CHECK_MIN_MS, this.#topic.partitions.length / PARTITIONS_PER_MS)
    const everyMs = Math.min(Math.max(ageMs * AGE_CHECK_SHARE, leastMs), AGE_CHECK_MAX_MS)
    this.#ctx.due.schedule(this, this.#ctx.clock.monotonic() + everyMs)
  }

  override fire(): void {
    this.#topic.expire()
    this.arm()
  }
}
