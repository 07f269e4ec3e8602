/**
 * Events to whoever listens, typed by a map of names to payloads. What a listener does wrong, by throwing or
 * by a promise that rejects, goes to `onError`: it stops no other listener and never reaches the emitter's
 * caller, who is in the middle of something else.
 *
 * The list of a name is replaced, never changed, so an emit walks the list that was there when it began:
 * who comes during it misses this event, who leaves during it is not called any more.
 */
export type Listener<T> = (event: T) => unknown

class Registration {
  readonly listener: Listener<never>
  readonly once: boolean
  live = true

  constructor(listener: Listener<never>, once: boolean) {
    this.listener = listener
    this.once = once
  }
}

const NOBODY: readonly Registration[] = []

export class Emitter<E extends object> {
  readonly #onError: (error: unknown, name: keyof E) => void
  readonly #lists = new Map<keyof E, readonly Registration[]>()

  /** `onError` must not throw. */
  constructor(onError: (error: unknown, name: keyof E) => void) {
    this.#onError = onError
  }

  /** Listens until the answer is called. Every call is a registration of its own, also of the same listener. */
  on<K extends keyof E>(name: K, listener: Listener<E[K]>): () => void {
    return this.#add(name, new Registration(listener, false))
  }

  /** Listens to one event, unless the answer is called before. */
  once<K extends keyof E>(name: K, listener: Listener<E[K]>): () => void {
    return this.#add(name, new Registration(listener, true))
  }

  /** Ends the newest registration of `listener`. */
  off<K extends keyof E>(name: K, listener: Listener<E[K]>): void {
    const registration = this.#list(name).findLast((each) => each.listener === listener)
    if (registration !== undefined) this.#remove(name, registration)
  }

  /** Calls everybody who listens, in the order they came; answers whether anybody did. */
  emit<K extends keyof E>(name: K, event: E[K]): boolean {
    const list = this.#list(name)
    for (const registration of list) {
      if (!registration.live) continue
      if (registration.once) this.#remove(name, registration)
      this.#call(name, registration.listener as Listener<E[K]>, event)
    }
    return list.length > 0
  }

  listenerCount(name: keyof E): number {
    return this.#list(name).length
  }

  #call<K extends keyof E>(name: K, listener: Listener<E[K]>, event: E[K]): void {
    try {
      const result = listener(event)
      if (isThenable(result)) result.then(undefined, (error) => this.#onError(error, name))
    } catch (error) {
      this.#onError(error, name)
    }
  }

  #list(name: keyof E): readonly Registration[] {
    return this.#lists.get(name) ?? NOBODY
  }

  #add(name: keyof E, registration: Registration): () => void {
    this.#lists.set(name, [...this.#list(name), registration])
    return () => this.#remove(name, registration)
  }

  #remove(name: keyof E, registration: Registration): void {
    if (!registration.live) return
    registration.live = false
    const rest = this.#list(name).filter((each) => each !== registration)
    if (rest.length === 0) this.#lists.delete(name)
    else this.#lists.set(name, rest)
  }
}

function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof (result as PromiseLike<unknown> | null | undefined)?.then === 'function'
}
