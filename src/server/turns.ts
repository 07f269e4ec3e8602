/**
 * How a request is answered that names very many things: so many of them in a turn of the event loop, and then
 * everybody else has his. One that names few is answered at once, as if this were not here; that is almost every one.
 *
 *   │ 500 of them │ others │ 500 of them │ others │ … │ all answered
 *
 * One `Turns` for a request: lists within lists share what a turn has.
 */
import type { CoreContext } from '../core/context.ts'

/** What takes longest of a thing, to refuse it with an error that says where, takes about 20 µs. */
const IN_A_TURN = 500

type Awaitable<T> = T | Promise<T>

export class Turns {
  readonly #dispatcher: Pick<CoreContext['dispatcher'], 'turn'>
  #left = IN_A_TURN
  #next: Promise<void> | undefined

  constructor({ dispatcher }: Pick<CoreContext, 'dispatcher'>) {
    this.#dispatcher = dispatcher
  }

  /** Answers in the order of the items. `answer` is called in that order too, and does not wait for the one before. */
  each<T, R>(items: readonly T[], answer: (item: T) => Awaitable<R>): Awaitable<R[]> {
    const answers: Awaitable<R>[] = []
    let waits = false
    for (const item of items) {
      if (this.#left <= 0) return this.#goOn(items, answer, answers)
      this.#left--
      const each = answer(item)
      waits ||= each instanceof Promise
      answers.push(each)
    }
    return waits ? Promise.all(answers) : (answers as R[])
  }

  async #goOn<T, R>(
    items: readonly T[],
    answer: (item: T) => Awaitable<R>,
    answers: Awaitable<R>[],
  ): Promise<R[]> {
    for (const each of answers) handled(each)
    for (let i = answers.length; i < items.length; i++) {
      while (this.#left <= 0) await this.#turn()
      this.#left--
      const each = answer(items[i] as T)
      handled(each)
      answers.push(each)
    }
    return Promise.all(answers)
  }

  #turn(): Promise<void> {
    this.#next ??= this.#dispatcher.turn().then(() => {
      this.#next = undefined
      this.#left = IN_A_TURN
    })
    return this.#next
  }
}

/** What fails before all are asked fails with them. */
function handled(answer: unknown): void {
  if (answer instanceof Promise) answer.catch(() => {})
}
