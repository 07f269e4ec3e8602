/** What became of each of several things that were asked for at once: one that is refused does not stop the others. */
import type { OdradekError } from '../model/errors.ts'
import { type Io, OK, REFUSED } from './command.ts'
import { Printer } from './printer.ts'

export class Outcomes {
  readonly #done: Printer
  readonly #refused: Printer
  #code = OK

  constructor({ stdout, stderr }: Io) {
    this.#done = new Printer(stdout)
    this.#refused = new Printer(stderr)
  }

  /** `text`: what is done, where there is no error. */
  async add(text: string, error: OdradekError | undefined): Promise<void> {
    if (error === undefined) return this.#done.line(text)
    this.#code = REFUSED
    await this.#refused.line(`odradek: ${error.code}: ${error.message}`)
  }

  /** Answers the exit code. */
  async end(): Promise<number> {
    await this.#done.flush()
    await this.#refused.flush()
    return this.#code
  }
}
