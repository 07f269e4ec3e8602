/**
 * Time and turns of the event loop: the only place that knows `Date.now`, timers and `setImmediate`.
 * Everything else takes a `Clock`, so that tests (ours and our users') run on a manual one.
 */
export interface Timer {
  /** Cancels it; harmless when it has fired. */
  cancel(): void
}

export interface Clock {
  /** Wall time in milliseconds, coarse (about one event-loop turn), for timestamps. */
  now(): number
  /** Monotonic milliseconds, fractional, for deadlines and latencies. Never goes back. */
  monotonic(): number
  /** Calls back once, after `delayMs`. Does not keep the process alive: see `hold`. */
  setTimer(callback: () => void, delayMs: number): Timer
  /** Calls back in a later turn of the event loop, after pending I/O and timers had their chance. */
  nextTurn(callback: () => void): void
  /** Keeps the process alive while `on`. */
  hold(on: boolean): void
}

/** Longest delay that timers take without wrapping around. */
const MAX_DELAY_MS = 0x7fff_ffff
/** `Date.now()` costs 44 ns; one reading serves this many calls of one turn. */
const READINGS = 64
/** Readings before that begins: to notice the end of a turn costs as much as several of them, and more on an idle loop. */
const LONE_READINGS = 16

type Immediate = (callback: () => void) => unknown

/** The real clock. Works in Node and, without `setImmediate`, in browsers. */
export class SystemClock implements Clock {
  #now = 0
  #left = 0
  #readings = 0
  /** The end of this turn of the loop will be noticed. */
  #forgets = false
  #holds = false
  readonly #immediate: Immediate

  constructor() {
    const native = (globalThis as { setImmediate?: Immediate }).setImmediate
    this.#immediate = native ?? messageImmediate()
  }

  now(): number {
    if (this.#left > 0) {
      this.#left--
      return this.#now
    }
    return this.#read()
  }

  #read(): number {
    this.#now = Date.now()
    if (++this.#readings < LONE_READINGS) return this.#now
    this.#left = READINGS
    if (!this.#forgets) {
      this.#forgets = true
      this.#immediate(this.#forget)
    }
    return this.#now
  }

  readonly #forget = (): void => {
    this.#left = 0
    this.#readings = 0
    this.#forgets = false
  }

  monotonic(): number {
    return performance.now()
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const handle = setTimeout(callback, Math.min(Math.max(delayMs, 0), MAX_DELAY_MS))
    unref(handle)
    return { cancel: () => clearTimeout(handle) }
  }

  nextTurn(callback: () => void): void {
    this.#immediate(callback)
  }

  hold(on: boolean): void {
    if (on === this.#holds) return
    this.#holds = on
    if (on) keepAlive()
    else letGo()
  }
}

let holders = 0
let keeper: unknown

/**
 * One timer for all clocks, which stays: to make and to clear one costs ten times a `ref` and an `unref`, and a broker
 * whose handlers are asynchronous holds and lets go with every burst.
 */
function keepAlive(): void {
  if (holders++ > 0) return
  if (keeper === undefined) keeper = setInterval(() => {}, MAX_DELAY_MS)
  else (keeper as { ref(): void }).ref()
}

function letGo(): void {
  if (--holders > 0 || unref(keeper)) return
  clearInterval(keeper as number)
  keeper = undefined
}

/** Whether there is such a thing: in browsers, timers are numbers and keep nothing alive. */
function unref(handle: unknown): boolean {
  const timer = handle as { unref?: () => void }
  if (typeof timer.unref !== 'function') return false
  timer.unref()
  return true
}

/** Browsers: a message to oneself is a macrotask without the 4 ms clamp of nested timeouts. */
function messageImmediate(): Immediate {
  const queue: (() => void)[] = []
  const channel = new MessageChannel()
  const receiver = channel.port1 as unknown as { onmessage: () => void }
  receiver.onmessage = () => queue.shift()?.()
  return (callback) => {
    queue.push(callback)
    channel.port2.postMessage(0)
  }
}
