/**
 * Which failures have their letter in a dead-letter topic, so that none has two. One index for each partition
 * of that topic:
 *
 *   source (topic id, partition, reader)  →  failed offset  →  offset of its letter
 *
 * A letter that retention took counts no more, and is forgotten once there are more such than others: so memory is in
 * proportion to the letters that are retained. Names are kept once per source, the rest are numbers.
 */

/** Letters taken by retention that are never worth a walk. */
const SLACK = 64

export class LetterIndex {
  readonly #sources = new Map<string, Map<number, number>>()
  #size = 0

  /** Letters it remembers, those that retention took included. */
  get size(): number {
    return this.#size
  }

  /** Offset of the letter of a failure, if the log, which begins at `start`, still has it. */
  find(source: string, offset: number, start: number): number | undefined {
    const letter = this.#sources.get(source)?.get(offset)
    return letter === undefined || letter < start ? undefined : letter
  }

  /** `letter` is the newest record of a log that begins at `start`. */
  add(source: string, offset: number, letter: number, start: number): void {
    let letters = this.#sources.get(source)
    if (letters === undefined) {
      letters = new Map()
      this.#sources.set(source, letters)
    }
    const before = letters.size
    letters.set(offset, letter)
    this.#size += letters.size - before
    if (this.#size > 2 * (letter + 1 - start) + SLACK) this.#forgetBelow(start)
  }

  /** The letter of a failure did not get into the log after all. */
  forget(source: string, offset: number): void {
    if (this.#sources.get(source)?.delete(offset) === true) this.#size--
  }

  #forgetBelow(start: number): void {
    for (const [source, letters] of this.#sources) {
      const before = letters.size
      for (const [offset, letter] of letters) if (letter < start) letters.delete(offset)
      this.#size -= before - letters.size
      if (letters.size === 0) this.#sources.delete(source)
    }
  }
}
