/**
 * Everything that is known of one data directory over all the processes that lived on it: the history that the
 * checker judges, and facts that are no business of a history. A process appends as it goes; what it has in its
 * ledger is safe from its own death when somebody else reads along (`onEntry`).
 *
 *   life 0          crash   life 1            crash   life 2
 *   ├─ events, facts ─┤ ✕ │ ├─ events, facts ─┤ ✕ │ ├─ …        indexes of events run on through all of them
 */
import { History, type HistoryEvent } from '../../../src/testing/history.ts'

export type Run = readonly [from: number, to: number]

/** What a history has no word for. */
export type Fact =
  /** A process begins. */
  | { readonly fact: 'begun' }
  /** A process has the directory open; what it took, in milliseconds. */
  | { readonly fact: 'opened'; readonly ms: number }
  /** It has read everything, and begins to work. */
  | { readonly fact: 'ready' }
  /** It has done what it was told, and waits for its end. */
  | { readonly fact: 'worked' }
  /** It has closed its broker, and ends by itself. */
  | { readonly fact: 'closed' }
  /** How often it went through each step. */
  | { readonly fact: 'steps'; readonly counts: Readonly<Record<string, number>> }
  /** It dies at this step now. */
  | { readonly fact: 'struck'; readonly step: string }
  /** Values of one transaction, by topic. */
  | { readonly fact: 'together'; readonly parts: readonly (readonly [topic: string, token: string])[] }
  /** The engine says that this place of a group is stored. */
  | {
      readonly fact: 'stored'
      readonly group: string
      readonly topic: string
      readonly partition: number
      readonly offset: number
      readonly settled: readonly Run[]
    }
  /** What becomes of a topic that comes and goes. */
  | { readonly fact: 'topic'; readonly topic: string; readonly state: TopicState }
  /** A record of the compacted topic is in. */
  | {
      readonly fact: 'kept'
      readonly token: string
      readonly key: string
      readonly partition: number
      readonly offset: number
      readonly isTombstone: boolean
    }
  /** What was found in a partition of the compacted topic. */
  | {
      readonly fact: 'compacted'
      readonly partition: number
      readonly records: readonly (readonly [offset: number, key: string, token: string])[]
    }
  /** A publish was rejected. */
  | { readonly fact: 'refused'; readonly code: string }
  /** A record was read that nobody published like that. */
  | { readonly fact: 'corrupt'; readonly text: string }
  /** A promise was broken. */
  | { readonly fact: 'fault'; readonly text: string }

export type TopicState = 'creating' | 'created' | 'deleting' | 'deleted'
export type Entry = HistoryEvent | Fact

/** A fact, and how many events there were before it. */
export interface Noted {
  readonly at: number
  readonly fact: Fact
}

export class Ledger {
  readonly history: History
  readonly facts: Noted[] = []
  readonly #onEntry: (entry: Entry) => void
  #told = 0

  /** `onEntry` hears of each entry before whoever made it goes on. */
  constructor(onEntry: (entry: Entry) => void = () => {}, history: History = new History()) {
    this.#onEntry = onEntry
    this.history = new Proxy(history, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => {
          const answer: unknown = Reflect.apply(member, target, args)
          this.#tell(target)
          return answer
        }
      },
    })
    this.#told = history.events.length
  }

  note(fact: Fact): void {
    this.facts.push({ at: this.history.events.length, fact })
    this.#onEntry(fact)
  }

  fault(text: string): void {
    this.note({ fact: 'fault', text })
  }

  #tell({ events }: History): void {
    for (; this.#told < events.length; this.#told++) this.#onEntry(events[this.#told] as HistoryEvent)
  }
}

/** Puts the ledgers of processes end to end, as they are read from elsewhere. */
export class Annals {
  readonly events: HistoryEvent[] = []
  readonly facts: Noted[] = []
  /** Index of the first event of the life that is being read. */
  #base = 0

  /** The next entries are of another process, whose indexes begin at 0. */
  begin(): void {
    this.#base = this.events.length
    this.add({ fact: 'begun' })
  }

  add(entry: Entry): void {
    if ('fact' in entry) this.facts.push({ at: this.events.length, fact: entry })
    else this.events.push(moved(entry, this.#base))
  }

  crash(): void {
    this.events.push({ type: 'crash', index: this.events.length })
  }
}

function moved(event: HistoryEvent, by: number): HistoryEvent {
  const at = { ...event, index: event.index + by }
  return 'of' in at ? { ...at, of: at.of + by } : at
}
