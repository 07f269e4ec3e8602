/** What a hostile client has learnt: names that there are, and whatever ids responses told. The newest of each kind. */
import type { Dice } from '../dice.ts'

const REMEMBERED = 12
/** Fields of responses that later requests may repeat. */
const TOLD: ReadonlySet<string> = new Set([
  'memberId',
  'topicId',
  'producerId',
  'producerEpoch',
  'sessionId',
  'generationId',
  'memberEpoch',
  'leader',
])

export class Lore {
  readonly #told = new Map<string, unknown[]>()
  readonly #secret: ReadonlySet<unknown>

  /** `secret`: never repeated, since it is the honest client's. */
  constructor(secret: readonly unknown[]) {
    this.#secret = new Set(secret)
  }

  /** Takes what it can use out of a response. */
  hear(value: unknown, depth = 0): void {
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
    for (const [name, each] of Object.entries(value)) {
      if (TOLD.has(name)) this.#keep(name === 'leader' ? 'memberId' : name, each)
      else if (depth < 6) this.hear(each, depth + 1)
    }
  }

  #keep(name: string, value: unknown): void {
    if (value === '' || value === null || this.#secret.has(value)) return
    const all = this.#told.get(name) ?? []
    this.#told.set(name, all)
    if (all.includes(value)) return
    if (all.push(value) > REMEMBERED) all.shift()
  }

  /** One of what was told; undefined while nothing was. */
  recall(name: string, dice: Dice): unknown {
    const all = this.#told.get(name)
    return all === undefined ? undefined : dice.pick(all)
  }
}
