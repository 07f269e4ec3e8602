/**
 * Who runs next. Partitions whose marks moved and pumps that can go on stand in one queue; a drain takes them in
 * turn, each with a budget of records, and runs their handlers. A partition runs the pumps that rest at its end.
 *
 *   publish ─► partition ──────┐                      ┌─► partition.run(budget) ─► its idle pumps
 *   settle, retry, member ─────┴─► queue ─► drain ────┼─► pump.run(budget)
 *                                           │         └─► …
 *                                           └ time spent? ─► next turn of the event loop
 *
 * Concurrency: one thread, and drains never nest. A drain runs as a microtask after the code that woke
 * it, so publish never runs a handler. All drains of one turn of the event loop share one time budget;
 * when it is spent the rest waits for the next turn, behind timers and I/O. The clock is read every
 * `#stride` records; the stride adapts to how long handlers take.
 */
import type { Clock } from '../model/clock.ts'
import { Deque } from './deque.ts'

/** Milliseconds of handlers per turn of the event loop. */
const TURN_BUDGET_MS = 5
const LONGEST_STRIDE = 64
/** Milliseconds between two looks at the clock that the stride aims for. */
const AIM_MS = 0.5

const RESOLVED = Promise.resolve()

/** A partition with news, or a pump that can go on. */
export interface Runnable {
  /** Hands out at most about `budget` records; how many it did. */
  run(budget: number): number
}

export class Dispatcher {
  /** Monotonic milliseconds at the last look, fresh enough for deadlines. */
  tick: number
  readonly #clock: Clock
  readonly #ready = new Deque<Runnable>()
  #draining = false
  #scheduled = false
  /** Something asked for a drain while one was on, and is not in a queue. */
  #asked = false
  #turnOpen = false
  /** The end of this turn will be noticed. */
  #turnAwaited = false
  #turnStart = 0
  /** The budget of this turn is spent. */
  #spent = false
  #stride = 8
  /** Records handed out since the last look at the clock. */
  #since = 0
  /** In flight, waiting publishers, retries due: what keeps the process alive and `idle()` waiting. */
  #active = 0
  /** Handlers that run on after their delivery was settled: no reason to live, but not idle either. */
  #goingOn = 0
  #holding = false
  #closed = false
  #afterDrain: (() => void)[] = []
  #whenIdle: (() => void)[] = []
  #nextTurn: { promise: Promise<void>; resolve: () => void } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.tick = clock.monotonic()
  }

  enqueue(ready: Runnable): void {
    this.#ready.push(ready)
    if (!this.#scheduled && !this.#draining) this.schedule()
  }

  /** It did not come to its end, and goes on before all others. */
  goOn(ready: Runnable): void {
    this.#ready.unshift(ready)
  }

  schedule(): void {
    this.#asked = true
    if (this.#scheduled || this.#draining || this.#spent || this.#closed) return
    this.#scheduled = true
    // A reaction costs a third of queueMicrotask, which makes an async resource each time.
    void RESOLVED.then(this.#run)
  }

  /**
   * Between `enter` and `leave` is a drain like any other, and `leave` goes on with what is queued. For the reactions
   * of handlers' promises: no user code is below them on the stack, and another microtask per record would
   * cost more than the record itself.
   */
  enter(): void {
    this.#draining = true
    this.#openTurn()
  }

  leave(): void {
    this.#draining = false
    this.#awaitTurn()
    if (this.#asked || this.#ready.length > 0) this.#run()
  }

  /** Whether a reaction may hand out a record by itself, which counts like any other. */
  goesOnInReaction(): boolean {
    if (this.#spent) return false
    return ++this.#since < this.#stride || !this.#look()
  }

  activate(): void {
    if (this.#active++ === 0) this.schedule()
  }

  deactivate(): void {
    if (--this.#active === 0) this.schedule()
  }

  /** A handler settled its delivery and has not returned; until it does, or is given up, its place is taken. */
  goesOn(): void {
    this.#goingOn++
  }

  wentOn(): void {
    if (--this.#goingOn === 0) this.schedule()
  }

  /** Monotonic milliseconds: while handlers run, those of the last look. */
  get now(): number {
    return this.#draining ? this.tick : this.#clock.monotonic()
  }

  /** Whether this turn's budget is spent: who publishes in a loop should let the event loop turn. */
  get spent(): boolean {
    return this.#spent
  }

  /** Resolves in the next turn of the event loop. */
  turn(): Promise<void> {
    if (this.#nextTurn === undefined) {
      let resolve: () => void = () => {}
      const promise = new Promise<void>((done) => {
        resolve = done
      })
      this.#nextTurn = { promise, resolve }
      this.#awaitTurn()
    }
    return this.#nextTurn.promise
  }

  /** Runs once after the current drain, or soon: for notices that should be coalesced. */
  afterDrain(callback: () => void): void {
    if (this.#closed) {
      void RESOLVED.then(callback)
      return
    }
    this.#afterDrain.push(callback)
    this.schedule()
  }

  /** Nothing deliverable, in flight, waiting or due. Once closed, it never is. */
  idle(): Promise<void> {
    if (this.#closed) return RESOLVED
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve)
      this.schedule()
    })
  }

  close(): void {
    this.#closed = true
    this.#clock.hold(false)
    this.#ready.clear()
    this.#settleIdle()
  }

  readonly #run = (): void => {
    this.#scheduled = false
    if (this.#draining || this.#spent || this.#closed) return
    this.#asked = false
    // What was noted outside of a drain comes before it: an expired handler is told before the next one is called.
    if (this.#afterDrain.length > 0) this.#notify()
    this.#draining = true
    try {
      this.#drain()
    } finally {
      this.#draining = false
      this.#awaitTurn()
    }
    this.#after()
  }

  #drain(): void {
    this.#openTurn()
    for (;;) {
      const ready = this.#ready.shift()
      if (ready === undefined) return
      this.#since += 1 + ready.run(this.#stride)
      if (this.#since >= this.#stride && this.#look()) return
    }
  }

  /** Looks at the clock; whether the turn's budget is spent. */
  #look(): boolean {
    this.#since = 0
    const now = this.#clock.monotonic()
    const took = now - this.tick
    this.tick = now
    if (took > AIM_MS) this.#stride = Math.max(1, this.#stride >> 1)
    else if (took < AIM_MS / 4) this.#stride = Math.min(LONGEST_STRIDE, this.#stride << 1)
    if (now - this.#turnStart < TURN_BUDGET_MS) return false
    this.#spent = true
    return true
  }

  #openTurn(): void {
    if (this.#turnOpen) return
    this.#turnOpen = true
    this.tick = this.#clock.monotonic()
    this.#turnStart = this.tick
  }

  /** After the handlers: the first of them should not wait for it. */
  #awaitTurn(): void {
    if (this.#turnAwaited) return
    this.#turnAwaited = true
    this.#clock.nextTurn(this.#closeTurn)
  }

  readonly #closeTurn = (): void => {
    this.#turnOpen = false
    this.#turnAwaited = false
    this.#spent = false
    const waiting = this.#nextTurn
    this.#nextTurn = undefined
    waiting?.resolve()
    if (this.#ready.length > 0) this.#run()
    else this.#after()
  }

  #after(): void {
    if (this.#afterDrain.length > 0) this.#notify()
    const hold = this.#active > 0
    if (hold !== this.#holding && !this.#closed) {
      this.#holding = hold
      this.#clock.hold(hold)
    }
    if (this.#whenIdle.length > 0 && this.#isIdle()) this.#settleIdle()
  }

  #notify(): void {
    const callbacks = this.#afterDrain
    this.#afterDrain = []
    for (const callback of callbacks) callback()
  }

  #isIdle(): boolean {
    return this.#active + this.#goingOn === 0 && this.#ready.length === 0
  }

  #settleIdle(): void {
    const waiting = this.#whenIdle
    this.#whenIdle = []
    for (const resolve of waiting) resolve()
  }
}
