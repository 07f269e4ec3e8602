/** A promise that is made when somebody asks for it, and told how it ended: most groups end before anybody does. */
import type { OdradekError } from '../../model/errors.ts'

export class Outcome {
  #promise: Promise<void> | null = null
  #resolve: () => void = () => {}
  #reject: (error: OdradekError) => void = () => {}

  /** To be asked for before it has ended. */
  get promise(): Promise<void> {
    this.#promise ??= new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    return this.#promise
  }

  resolve(): void {
    this.#resolve()
  }

  reject(error: OdradekError): void {
    this.#reject(error)
  }
}
