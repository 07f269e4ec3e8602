/** A kind of traffic that the soak test keeps up, and the books it keeps about it. */
import type { Broker } from 'odradek'

export interface Workload {
  readonly name: string
  /** Publishes a little more. */
  step(): Promise<void>
  /** After the last step: waits for what is under way and throws unless the books balance. */
  settle(): Promise<void>
  /** Records published so far. */
  readonly published: number
}

export type OpenWorkload = (broker: Broker) => Promise<Workload>

/** Records of one step, so that the workloads take turns. */
export const STEP = 256

/** An order-free fingerprint of a set of numbers. */
export class Ledger {
  count = 0
  #sum = 0

  add(id: number): void {
    this.count++
    this.#sum = (this.#sum + Math.imul(id ^ (id >>> 15), 0x85ebca6b)) | 0
  }

  /** Throws unless the entries of `parts` together are the entries of this one. */
  balance(what: string, ...parts: readonly Ledger[]): void {
    const count = parts.reduce((total, part) => total + part.count, 0)
    const sum = parts.reduce((total, part) => (total + part.#sum) | 0, 0)
    if (count !== this.count || sum !== this.#sum) {
      throw new Error(`${what}: ${count} of ${this.count} records, checksums ${sum} and ${this.#sum}`)
    }
  }
}
