/**
 * Single changes that make a sound, finished history unsound, each with the kinds of anomaly of which one at
 * least must be found. A change picks its place among those where it certainly matters, or finds none.
 */
import type {
  DeliverEvent,
  HistoryEvent,
  PollOkEvent,
  ScanEvent,
  ScanOkEvent,
  SendEvent,
  SendOkEvent,
  SettleEvent,
} from '../../src/testing/history.ts'
import type { AnomalyKind } from '../../src/testing/history-anomalies.ts'
import { pick } from './simulation.ts'

type Events = readonly HistoryEvent[]
type OfType<Type extends HistoryEvent['type']> = Extract<HistoryEvent, { type: Type }>

export interface Mutation {
  readonly title: string
  readonly finds: readonly AnomalyKind[]
  /** The changed events, not numbered anew; null where there is no place for the change. */
  readonly apply: (story: Story, choice: number) => HistoryEvent[] | null
}

/** A history with what mutations need to know of it. */
export class Story {
  readonly events: Events
  /** Indexes of events whose cursor had a replay on its way. */
  readonly #doubtful = new Set<number>()
  /** Indexes of the `reset-ok` that each event of a cursor came after. */
  readonly #epochs = new Map<number, number>()
  readonly #lastEpochs = new Map<string, number>()
  /** How many events told of a position. */
  readonly #reads = new Map<string, number>()

  constructor(events: Events) {
    this.events = events
    const pending = new Set<string>()
    for (const event of events) {
      for (const read of this.recordsOf(event)) {
        const at = `${read.partition}/${read.offset}`
        this.#reads.set(at, (this.#reads.get(at) ?? 0) + 1)
      }
      const cursor = this.cursorOf(event)
      if (cursor === null) continue
      if (event.type === 'reset') pending.add(cursor)
      if (event.type === 'reset-ok') this.#lastEpochs.set(cursor, event.index)
      if (event.type === 'reset-ok' || event.type === 'fail') pending.delete(cursor)
      if (pending.has(cursor)) this.#doubtful.add(event.index)
      this.#epochs.set(event.index, this.#lastEpochs.get(cursor) ?? -1)
    }
  }

  of<Type extends HistoryEvent['type']>(type: Type, where: (event: OfType<Type>) => boolean): OfType<Type>[] {
    return this.events.filter((event): event is OfType<Type> => {
      return event.type === type && where(event as OfType<Type>)
    })
  }

  start<Event extends HistoryEvent>(event: { of: number }): Event {
    return this.events[event.of] as Event
  }

  cursorOf(event: HistoryEvent): string | null {
    const at =
      event.type === 'settle' || event.type === 'reset-ok' || event.type === 'fail'
        ? this.start(event)
        : event
    return 'group' in at && 'partition' in at ? `${at.group}/${at.partition}` : null
  }

  recordsOf(event: HistoryEvent): { partition: number; offset: number }[] {
    if (event.type === 'poll-ok') return [...event.records]
    if (event.type === 'deliver') return [event]
    if (event.type !== 'scan-ok') return []
    const { partition } = this.start<ScanEvent>(event)
    return event.records.map(({ offset }) => ({ partition, offset }))
  }

  /** How often a position was read. */
  reads(partition: number, offset: number): number {
    return this.#reads.get(`${partition}/${offset}`) ?? 0
  }

  /** No replay was on its way, now or at an earlier delivery of the same record. */
  certain(event: HistoryEvent): boolean {
    if (event.type === 'settle') {
      const delivery = this.start<DeliverEvent>(event)
      return (
        this.#epoch(delivery) === this.#epoch(event) &&
        this.certain(delivery) &&
        !this.#doubtful.has(event.index)
      )
    }
    if (this.#doubtful.has(event.index)) return false
    if (event.type !== 'deliver') return true
    return (
      this.of('deliver', (other) => this.#doubtful.has(other.index) && sameRecord(other, event)).length === 0
    )
  }

  /** No replay came after it. */
  last(event: HistoryEvent): boolean {
    return this.#epoch(event) === this.#lastEpochs.get(this.cursorOf(event) ?? '')
  }

  #epoch(event: HistoryEvent): number {
    return this.#epochs.get(event.index) ?? -1
  }

  // ── changes ───────────────────────────────────────────────────────────────────────────────────

  replace(...changed: HistoryEvent[]): HistoryEvent[] {
    const events = [...this.events]
    for (const event of changed) events[event.index] = event
    return events
  }

  insertAfter(event: HistoryEvent, ...inserted: HistoryEvent[]): HistoryEvent[] {
    const events = [...this.events]
    events.splice(event.index + 1, 0, ...inserted.map((it) => ({ ...it, index: -1 })))
    return events
  }
}

/** Numbers events by their places, and lets completions follow their starts. */
export function renumber(events: Events): HistoryEvent[] {
  const places = new Map(events.map((event, index) => [event.index, index]))
  return events.map((event, index) => {
    return 'of' in event ? { ...event, index, of: places.get(event.of) ?? -1 } : { ...event, index }
  })
}

function sameRecord(a: DeliverEvent, b: DeliverEvent): boolean {
  return a.group === b.group && a.partition === b.partition && a.offset === b.offset
}

function change<Event extends HistoryEvent>(
  sites: Event[],
  choice: number,
  apply: (event: Event) => HistoryEvent[] | null,
): HistoryEvent[] | null {
  return sites.length === 0 ? null : apply(pick(sites, choice))
}

function atLeastOnce(event: { group: string }): boolean {
  return event.group !== 'once'
}

function acks(story: Story): SettleEvent[] {
  return story.of('settle', (event) => {
    return event.how === 'ack' && story.certain(event) && atLeastOnce(story.start<DeliverEvent>(event))
  })
}

const reading: Mutation[] = [
  {
    title: 'a scan leaves a record out',
    finds: ['skipped-read', 'restart-read-regressed'],
    apply: (story, choice) => {
      const others = (scan: ScanOkEvent) => (record: { offset: number }) =>
        story.reads(story.start<ScanEvent>(scan).partition, record.offset) > 1
      return change(
        story.of('scan-ok', (scan) => scan.records.some(others(scan))),
        choice,
        (scan) => {
          const left = pick(scan.records.filter(others(scan)), choice)
          return story.replace({ ...scan, records: scan.records.filter((record) => record !== left) })
        },
      )
    },
  },
  {
    title: 'a scan swaps two values',
    finds: ['inconsistent-offsets'],
    apply: (story, choice) => {
      const swappable = (scan: ScanOkEvent) => {
        const { partition } = story.start<ScanEvent>(scan)
        return scan.records.length > 1 && story.reads(partition, scan.records[0]?.offset ?? 0) > 1
      }
      return change(story.of('scan-ok', swappable), choice, (scan) => {
        const [first, second, ...rest] = scan.records
        if (first === undefined || second === undefined) return null
        const swapped = [{ ...first, value: second.value }, { ...second, value: first.value }, ...rest]
        return story.replace({ ...scan, records: swapped })
      })
    },
  },
  {
    title: 'a scan ends early',
    finds: ['skipped-read', 'restart-read-regressed'],
    apply: (story, choice) => {
      const cut = (scan: ScanOkEvent) => {
        const { partition } = story.start<ScanEvent>(scan)
        const last = scan.records.at(-1)
        const read = (event: HistoryEvent) =>
          event.index < scan.of &&
          story.recordsOf(event).some((it) => it.partition === partition && it.offset === last?.offset)
        return last !== undefined && story.events.some(read)
      }
      return change(story.of('scan-ok', cut), choice, (scan) => {
        const to = scan.records.at(-1)?.offset ?? 0
        return story.replace({ ...scan, to, records: scan.records.slice(0, -1) })
      })
    },
  },
  {
    title: 'a poll returns a record twice',
    finds: ['nonmonotonic-read'],
    apply: (story, choice) =>
      change(
        story.of('poll-ok', (poll) => poll.records.length > 0),
        choice,
        (poll) => {
          return story.replace({ ...poll, records: poll.records.flatMap((record) => [record, record]) })
        },
      ),
  },
  {
    title: 'a poll returns records in the wrong order',
    finds: ['nonmonotonic-read'],
    apply: (story, choice) => {
      const ordered = (poll: PollOkEvent) =>
        poll.records.length > 1 && poll.records[0]?.partition === poll.records[1]?.partition
      return change(story.of('poll-ok', ordered), choice, (poll) => {
        return story.replace({ ...poll, records: [...poll.records].reverse() })
      })
    },
  },
  {
    title: 'a record changes on its way to a member',
    finds: ['inconsistent-offsets'],
    apply: (story, choice) =>
      change(
        story.of('deliver', (it) => story.reads(it.partition, it.offset) > 1),
        choice,
        (delivery) => {
          return story.replace({ ...delivery, value: 'garbage' })
        },
      ),
  },
  {
    title: 'no reader sees an acknowledged record',
    finds: ['lost-write', 'unseen'],
    apply: (story, choice) => {
      const evicted = (partition: number) =>
        Math.max(0, ...story.of('evict', (it) => it.partition === partition).map(({ start }) => start))
      const kept = (it: SendOkEvent) =>
        it.position !== null && it.position.offset >= evicted(it.position.partition)
      return change(story.of('send-ok', kept), choice, ({ position }) => {
        if (position === null) return null
        const lost = (it: { partition: number; offset: number }) =>
          it.partition === position.partition && it.offset === position.offset
        return story.events
          .filter((it) => !(it.type === 'deliver' && lost(it)))
          .filter((it) => !(it.type === 'settle' && lost(story.start<DeliverEvent>(it))))
          .map((it) => {
            if (it.type === 'poll-ok') return { ...it, records: it.records.filter((record) => !lost(record)) }
            if (it.type !== 'scan-ok') return it
            const { partition } = story.start<ScanEvent>(it)
            return { ...it, records: it.records.filter(({ offset }) => !lost({ partition, offset })) }
          })
      })
    },
  },
]

const sending: Mutation[] = [
  {
    title: 'a sender is told another offset',
    finds: ['duplicate'],
    apply: (story, choice) => {
      const read = ({ position }: SendOkEvent) =>
        position !== null && story.reads(position.partition, position.offset) > 0
      return change(story.of('send-ok', read), choice, (ok) => {
        if (ok.position === null) return null
        return story.replace({ ...ok, position: { ...ok.position, offset: ok.position.offset + 1_000 } })
      })
    },
  },
  {
    title: 'a send fails, and its record is read',
    finds: ['aborted-read'],
    apply: (story, choice) => {
      const read = ({ position }: SendOkEvent) =>
        position !== null && story.reads(position.partition, position.offset) > 0
      return change(story.of('send-ok', read), choice, ({ index, of }) => {
        return story.replace({ type: 'fail', index, of })
      })
    },
  },
  {
    title: 'two sends get offsets against their order',
    finds: ['nonmonotonic-send'],
    apply: (story, choice) => {
      const next = (ok: SendOkEvent) =>
        story.of('send-ok', (other) => {
          return (
            other.of > ok.index &&
            other.position !== null &&
            other.position.partition === ok.position?.partition
          )
        })[0]
      return change(
        story.of('send-ok', (ok) => next(ok) !== undefined),
        choice,
        (ok) => {
          const other = next(ok)
          if (other === undefined) return null
          const [send, otherSend] = [story.start<SendEvent>(ok), story.start<SendEvent>(other)]
          return story.replace(
            { ...send, value: otherSend.value },
            { ...otherSend, value: send.value },
            { ...ok, position: other.position },
            { ...other, position: ok.position },
          )
        },
      )
    },
  },
]

const grouping: Mutation[] = [
  {
    title: 'an ack is missing',
    finds: ['unaccounted-record', 'drops-miscounted'],
    apply: (story, choice) => {
      const all = acks(story)
      const only = (ack: SettleEvent) => {
        const delivery = story.start<DeliverEvent>(ack)
        const others = all.filter(
          (it) => sameRecord(story.start<DeliverEvent>(it), delivery) && story.last(it),
        )
        const dead = story.of(
          'dead-letter',
          (it) => it.partition === delivery.partition && it.offset === delivery.offset,
        )
        return story.last(ack) && others.length === 1 && dead.length === 0
      }
      return change(all.filter(only), choice, (ack) => story.events.filter((it) => it !== ack))
    },
  },
  {
    title: 'a record comes again after its ack',
    finds: ['bad-redelivery'],
    apply: (story, choice) =>
      change(acks(story), choice, (ack) => story.insertAfter(ack, story.start<DeliverEvent>(ack))),
  },
  {
    title: 'a delivery is settled twice',
    finds: ['stale-settle'],
    apply: (story, choice) =>
      change(
        story.of('settle', (it) => story.certain(it)),
        choice,
        (it) => story.insertAfter(it, it),
      ),
  },
  {
    title: 'two members get one record',
    finds: ['concurrent-ownership'],
    apply: (story, choice) =>
      change(
        story.of('deliver', (it) => story.certain(it)),
        choice,
        (it) => {
          return story.insertAfter(it, { ...it, member: 'somebody else' })
        },
      ),
  },
  {
    title: 'an attempt is far too high',
    finds: ['attempts-out-of-bounds'],
    apply: (story, choice) =>
      change(
        story.of('deliver', (it) => story.certain(it)),
        choice,
        (it) => {
          return story.replace({ ...it, attempt: it.attempt + 100 })
        },
      ),
  },
  {
    title: 'a delivery overtakes the one before it',
    finds: ['order-violation', 'concurrent-ownership'],
    apply: (story, choice) => {
      const cuts = new Set(['reset', 'crash', 'close', 'leave'])
      const next = (ack: SettleEvent) => {
        for (const event of story.events.slice(ack.index + 1)) {
          if (cuts.has(event.type)) return null
          if (event.type === 'deliver' && story.cursorOf(event) === story.cursorOf(ack)) return event
        }
        return null
      }
      const ordered = acks(story).filter((ack) => {
        const delivery = story.start<DeliverEvent>(ack)
        return delivery.group === 'audit' && next(ack) !== null
      })
      return change(ordered, choice, (ack) => {
        const by = next(ack)
        if (by === null) return null
        return story.insertAfter(by, ack).filter((it) => it !== ack)
      })
    },
  },
  {
    title: 'a record is dead-lettered again',
    finds: ['dead-lettered-twice'],
    apply: (story, choice) =>
      change(
        story.of('dead-letter', () => true),
        choice,
        (it) => {
          const resets = story.of('reset', (reset) => story.cursorOf(reset) === story.cursorOf(it))
          return story.insertAfter(it, ...resets.map(() => it))
        },
      ),
  },
  {
    title: 'a commit goes back',
    finds: ['commit-regressed'],
    apply: (story, choice) =>
      change(
        story.of('commit', (it) => story.certain(it)),
        choice,
        (it) => story.replace({ ...it, offset: -1 }),
      ),
  },
  {
    title: 'a commit passes the end',
    finds: ['commit-beyond-end'],
    apply: (story, choice) =>
      change(
        story.of('commit', (it) => story.certain(it)),
        choice,
        (it) => {
          return story.replace({ ...it, offset: it.offset + 1_000 })
        },
      ),
  },
  {
    title: 'a commit passes what is in flight',
    finds: ['commit-past-unsettled'],
    apply: (story, choice) =>
      change(acks(story), choice, (ack) => {
        const { group, topic, partition, offset, index } = story.start<DeliverEvent>(ack)
        return story.insertAfter(story.events[index] as HistoryEvent, {
          type: 'commit',
          index: -1,
          group,
          topic,
          partition,
          offset: offset + 1,
        })
      }),
  },
  {
    title: 'too many drops are counted',
    finds: ['drops-miscounted'],
    apply: (story, choice) =>
      change(
        story.of('drop', (it) => story.last(it) && atLeastOnce(it)),
        choice,
        (it) => {
          return story.replace({ ...it, count: it.count + 1_000 })
        },
      ),
  },
]

export const MUTATIONS: readonly Mutation[] = [...reading, ...sending, ...grouping]
