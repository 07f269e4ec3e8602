/** Prints records until there were enough. What `print` has answered to is taken by whoever reads the output. */
import type { FetchedRecord } from '../client/fetched.ts'
import type { Printer } from './printer.ts'

export class RecordPrinter {
  readonly #printer: Printer
  readonly write: (record: FetchedRecord, printer: Printer) => Promise<void>
  #left: number

  constructor(printer: Printer, write: RecordPrinter['write'], limit: number) {
    this.#printer = printer
    this.write = write
    this.#left = limit
  }

  get isFull(): boolean {
    return this.#left === 0
  }

  /** Answers how many of them were printed. @throws BrokenPipe */
  async print(records: readonly FetchedRecord[]): Promise<number> {
    const count = Math.min(records.length, this.#left)
    for (let i = 0; i < count; i++) await this.write(records[i] as FetchedRecord, this.#printer)
    this.#left -= count
    await this.#printer.flush()
    return count
  }
}
