/**
 * Records of one log that it has taken and that are not durable yet. Nobody has been handed them, so while there are
 * any the broker is not idle, and the process must not end. One watch per log, however many publish.
 *
 *   taken ─► begin ─► │ durable(newest so far) │ ─► more came meanwhile? again ─► at rest
 */
import type { PartitionLog } from '../log/contract.ts'
import type { Dispatcher } from './dispatcher.ts'

export class FlushWatch {
  readonly #log: PartitionLog
  readonly #dispatcher: Dispatcher
  readonly #failed: (error: unknown) => void
  #watching = false
  /** Somebody was answered who will never hear how it ends. */
  #unawaited = false
  /** The failure that was told last: of one flush, several watches may hear. */
  #told: unknown

  /** `failed` hears of a failure that nobody awaits. */
  constructor(log: PartitionLog, dispatcher: Dispatcher, failed: (error: unknown) => void) {
    this.#log = log
    this.#dispatcher = dispatcher
    this.#failed = failed
  }

  /** There is something that is not durable. */
  begin(awaited: boolean): void {
    if (!awaited) this.#unawaited = true
    if (this.#watching) return
    this.#watching = true
    this.#dispatcher.activate()
    this.#follow(this.#log.marks.end - 1)
  }

  #follow(last: number): void {
    this.#log.durable(last).then(
      () => this.#ended(last),
      (error: unknown) => {
        if (this.#unawaited && error !== this.#told) this.#failed(error)
        this.#told = error
        this.#ended(last)
      },
    )
  }

  #ended(last: number): void {
    const { high, end } = this.#log.marks
    // Of what came meanwhile there is an end to be heard; what failed has had its own.
    if (high < end && last < end - 1) this.#follow(end - 1)
    else {
      this.#watching = false
      this.#unawaited = false
      this.#dispatcher.deactivate()
    }
  }
}
