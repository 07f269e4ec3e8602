/** What came of one client's trials, in the order of the table, for whoever puts the matrix together. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Outcome } from './matrix.ts'

export class Outcomes {
  readonly #id: string
  readonly #client: string
  readonly #all = new Map<string, Outcome>()

  constructor(id: string, client: string) {
    this.#id = id
    this.#client = client
  }

  note(feature: string, state: Outcome['state'], why?: string): void {
    this.#all.set(feature, { client: this.#client, feature, state, ...(why === undefined ? {} : { why }) })
  }

  async noting(feature: string, run: () => Promise<void>): Promise<void> {
    try {
      await run()
      this.note(feature, 'passed')
    } catch (error) {
      const [firstLine = ''] = String((error as Error)?.message ?? error).split('\n')
      this.note(feature, 'failed', firstLine)
      throw error
    }
  }

  write(): void {
    const folder = process.env.ODRADEK_INTEROP_OUTCOMES
    if (folder === undefined) return
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `${this.#id}.json`), JSON.stringify([...this.#all.values()]))
  }
}
