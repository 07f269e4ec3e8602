/**
 * When the age of a topic's records is looked at: again and again, as often as its retention makes sense of. Where two
 * ages of looks in a row found nothing, nothing has come for as long, or what is there is held or of the future: then
 * once a second will do, so that a thousand topics that keep records for a millisecond do not keep a process busy.
 */
import type { CoreContext } from './context.ts'
import { Due } from './due-queue.ts'
import type { Topic } from './topic.ts'

/** How often age is looked at: this share of the age, within these bounds. */
const AGE_CHECK_SHARE = 0.1
const AGE_CHECK_MIN_MS = 10
const AGE_CHECK_MAX_MS = 60_000
/** Looked at on average, at most: or a topic of ten thousand that keeps nothing would keep the process busy. */
const PARTITIONS_PER_MS = 10

/** So many looks in a row are two ages. */
const FRUITLESS_LOOKS = 2 / AGE_CHECK_SHARE
const FRUITLESS_MS = 1_000

export class AgeDue extends Due {
  readonly #ctx: CoreContext
  readonly #topic: Topic
  /** Looks since something was evicted. */
  #fruitless = 0

  constructor(ctx: CoreContext, topic: Topic) {
    super()
    this.#ctx = ctx
    this.#topic = topic
  }

  arm(): void {
    this.#fruitless = 0
    this.#schedule()
  }

  #schedule(): void {
    const { ageMs } = this.#topic.retention
    if (ageMs === Number.POSITIVE_INFINITY) return
    const shortestMs = this.#fruitless < FRUITLESS_LOOKS ? AGE_CHECK_MIN_MS : FRUITLESS_MS
    const leastMs = Math.max(shortestMs, this.#topic.partitions.length / PARTITIONS_PER_MS)
    const everyMs = Math.min(Math.max(ageMs * AGE_CHECK_SHARE, leastMs), AGE_CHECK_MAX_MS)
    this.#ctx.due.schedule(this, this.#ctx.clock.monotonic() + everyMs)
  }

  override fire(): void {
    const before = this.#evicted
    this.#topic.expire()
    this.#fruitless = this.#evicted === before ? this.#fruitless + 1 : 0
    this.#schedule()
  }

  /** Records that are gone, of all partitions. */
  get #evicted(): number {
    return this.#topic.partitions.reduce((sum, { log }) => sum + log.marks.start, 0)
  }
}
