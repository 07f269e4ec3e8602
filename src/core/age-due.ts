/** When the age of a topic's records is looked at: again and again, as often as its retention makes sense of. */
import type { CoreContext } from './context.ts'
import { Due } from './due-queue.ts'
import type { Topic } from './topic.ts'

/** How often age is looked at: this share of the age, within these bounds. */
const AGE_CHECK_SHARE = 0.1
const AGE_CHECK_MIN_MS = 10
const AGE_CHECK_MAX_MS = 60_000

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
    const everyMs = Math.min(Math.max(ageMs * AGE_CHECK_SHARE, AGE_CHECK_MIN_MS), AGE_CHECK_MAX_MS)
    this.#ctx.due.schedule(this, this.#ctx.clock.monotonic() + everyMs)
  }

  override fire(): void {
    this.#topic.expire()
    this.arm()
  }
}
