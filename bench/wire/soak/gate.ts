/**
 * Where the clients of the soak test stand still while the server is looked at: each passes it between two steps. Closed,
 * it holds whoever comes; who waits for an answer comes when there is one.
 */
export class Gate {
  #clients = 0
  readonly #held: (() => void)[] = []
  #onAllHeld: (() => void) | undefined
  #over = false

  /** Runs a client for as long as the test lasts: one step after the other. */
  async run(step: () => Promise<void>): Promise<void> {
    this.#clients++
    while (!this.#over) {
      await step()
      await this.#pass()
    }
  }

  #pass(): Promise<void> | undefined {
    if (this.#onAllHeld === undefined) return undefined
    return new Promise((resolve) => {
      this.#held.push(resolve)
      if (this.#held.length === this.#clients) this.#onAllHeld?.()
    })
  }

  /** Resolves when all stand still. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#onAllHeld = resolve
    })
  }

  open(): void {
    this.#onAllHeld = undefined
    for (const go of this.#held.splice(0)) go()
  }

  /** Nobody begins another step. */
  end(): void {
    this.#over = true
    this.open()
  }
}
