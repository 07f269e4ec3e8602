/**
 * Counts what arrived and what it was: the handler of every bench is one call of a tally, so that all
 * contenders do the same work per delivery and no lost, doubled or misplaced record goes unseen.
 */
export class Tally {
  count = 0
  hash = 0
  #target = 0
  #finish: () => void = () => {}
  /** Settles when the target is reached. */
  done: Promise<void> = Promise.resolve()

  /** Forgets the past and waits for `target` deliveries. */
  start(target: number): void {
    this.count = 0
    this.hash = 0
    this.expect(target)
  }

  /** Waits for `more` deliveries on top of those there were. */
  expect(more: number): void {
    this.#target = this.count + more
    this.done = new Promise((resolve) => {
      this.#finish = resolve
    })
  }

  /** One delivery whose place in the order matters. */
  add(value: number): void {
    this.hash = inOrder(this.hash, value)
    if (++this.count === this.#target) this.#finish()
  }

  /** One delivery of a set that may come in any order. */
  addAnyOrder(value: number): void {
    this.hash = inAnyOrder(this.hash, value)
    if (++this.count === this.#target) this.#finish()
  }
}

function inOrder(hash: number, value: number): number {
  return (Math.imul(hash, 31) + value) | 0
}

function inAnyOrder(hash: number, value: number): number {
  return (hash + Math.imul(value ^ (value >>> 15), 0x85ebca6b)) | 0
}

/** What a tally must hold after `count` deliveries. */
export type Expectation = (count: number, index: number) => number

/** Values `valueAt(0)`, `valueAt(1)`, … in this order. `index` is the tally's place in its session. */
export function ordered(valueAt: (i: number, index: number) => number): Expectation {
  return remember((count, index) => {
    let hash = 0
    for (let i = 0; i < count; i++) hash = inOrder(hash, valueAt(i, index))
    return hash
  })
}

/** The same values in any order. */
export function anyOrder(valueAt: (i: number) => number): Expectation {
  return remember((count) => {
    let hash = 0
    for (let i = 0; i < count; i++) hash = inAnyOrder(hash, valueAt(i))
    return hash
  })
}

function remember(expectation: Expectation): Expectation {
  const known = new Map<string, number>()
  return (count, index) => {
    const key = `${count}/${index}`
    const hash = known.get(key) ?? expectation(count, index)
    known.set(key, hash)
    return hash
  }
}
