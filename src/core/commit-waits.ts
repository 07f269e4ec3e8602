/** Who waits for a cursor to settle everything below an offset. */
import { abortedError, type OdradekError } from '../model/errors.ts'

interface CommitWait {
  readonly offset: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
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
        resolve: () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        },
        reject,
      }
      this.#waits.push(wait)
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** Everything below `position` is settled. */
  serve(position: number): void {
    for (const wait of this.#waits) if (wait.offset <= position) wait.resolve()
    this.#waits = this.#waits.filter((wait) => wait.offset > position)
  }

  fail(error: OdradekError): void {
    for (const wait of this.#waits) wait.reject(error)
    this.#waits = []
  }
}
