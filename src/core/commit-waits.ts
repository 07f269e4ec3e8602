/** Who waits for a cursor to settle everything below an offset. */
import { abortedError, type OdradekError } from '../model/errors.ts'

interface CommitWait {
  readonly offset: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  readonly unlisten: () => void
}

export class CommitWaits {
  #waits: CommitWait[] = []

  get length(): number {
    return this.#waits.length
  }

  /** @throws OdradekError ABORTED */
  until(offset: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(abortedError(signal, 'the wait'))
        return
      }
      const abort = (): void => {
        this.#waits = this.#waits.filter((each) => each !== wait)
        reject(abortedError(signal as AbortSignal, 'the wait'))
      }
      const wait: CommitWait = {
        offset,
        resolve,
        reject,
        unlisten: () => signal?.removeEventListener('abort', abort),
      }
      this.#waits.push(wait)
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** Everything below `position` is settled. */
  serve(position: number): void {
    this.#end(
      (wait) => wait.offset <= position,
      (wait) => wait.resolve(),
    )
  }

  fail(error: OdradekError): void {
    this.#end(
      () => true,
      (wait) => wait.reject(error),
    )
  }

  #end(isOver: (wait: CommitWait) => boolean, how: (wait: CommitWait) => void): void {
    const over = this.#waits.filter(isOver)
    this.#waits = this.#waits.filter((wait) => !isOver(wait))
    for (const wait of over) {
      wait.unlisten()
      how(wait)
    }
  }
}
