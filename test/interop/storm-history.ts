/**
 * The history of a storm, from what each client said.
 *
 *   {sending}                     send                 {record}         deliver
 *   {produced}                    send-ok              {committed}      ack of what is in the member's hands below, commit
 *   neither                       unknown              {revoked}, death release of what is in the member's hands
 *
 * A commit without an answer took effect if nobody was given the records again afterwards.
 */
import { History } from '../../src/testing/history.ts'
import type { DriverEvent } from './driver.ts'

export interface Scan {
  readonly partition: number
  readonly high: number
  readonly records: readonly { readonly offset: number; readonly value: string }[]
}

/** What is needed of a driver. */
interface Speaker {
  readonly events: readonly DriverEvent[]
  readonly wasKilled: boolean
}

interface Said {
  readonly seed: number
  readonly topic: string
  readonly group: string
  readonly producers: readonly Speaker[]
  readonly members: readonly Speaker[]
  readonly scans: readonly Scan[]
}

interface Place {
  readonly partition: number
  readonly offset: number
}

interface Moment {
  readonly at: number
  readonly process: string
  readonly event: DriverEvent
}

interface Held {
  readonly delivery: number
  readonly partition: number
  readonly offset: number
}

export function historyOf({ seed, topic, group, producers, members, scans }: Said): History {
  const history = new History({ seed })
  history.group(group, { order: 'partition', ownership: 'partition', guarantee: 'at-least-once' })
  for (const { partition } of scans) history.resetOk(history.reset(group, topic, partition), 0)
  const moments = momentsOf(producers, members)
  const teller = new Teller(history, topic, group, moments)
  for (const [index, moment] of moments.entries()) teller.tell(moment, index)
  history.drained(group)
  for (const { partition, high, records } of scans) {
    history.scanOk(history.scan(topic, partition), 0, high, records)
  }
  return history
}

/** In the order of their times; the end of a process is one, too. */
function momentsOf(producers: readonly Speaker[], members: readonly Speaker[]): Moment[] {
  const moments: Moment[] = []
  const add = (driver: Speaker, process: string): void => {
    let last = 0
    for (const event of driver.events) {
      if (typeof event.at !== 'number') continue
      last = event.at
      moments.push({ at: last, process, event })
    }
    if (driver.wasKilled) moments.push({ at: last, process, event: { revoked: true } })
  }
  for (const [i, driver] of producers.entries()) add(driver, `producer-${i}`)
  for (const [i, driver] of members.entries()) add(driver, `member-${i}`)
  return moments.sort((a, b) => a.at - b.at)
}

class Teller {
  readonly #history: History
  readonly #topic: string
  readonly #group: string
  readonly #moments: readonly Moment[]
  readonly #sends = new Map<unknown, number>()
  readonly #held = new Map<string, Held[]>()
  #batches = 0
  readonly #batchOf = new Map<string, number>()

  constructor(history: History, topic: string, group: string, moments: readonly Moment[]) {
    this.#history = history
    this.#topic = topic
    this.#group = group
    this.#moments = moments
  }

  tell({ process, event }: Moment, index: number): void {
    if (event.sending !== undefined) {
      const send = this.#history.send(process, this.#topic, String(event.sending), String(event.key))
      this.#sends.set(event.sending, send)
    } else if (event.produced !== undefined) this.#produced(event.produced as Place & { value: string })
    else if (event.record !== undefined) this.#deliver(process, event)
    else if (event.committed !== undefined) this.#commit(process, event.committed as Place)
    else if (event.committing !== undefined) {
      const place = event.committing as Place
      if (!this.#isAnswered(process, place, index) && !this.#cameAgain(place, index))
        this.#commit(process, place)
    } else if (event.revoked === true) this.#release(process)
  }

  #produced({ value, partition, offset }: Place & { value: string }): void {
    const send = this.#sends.get(value)
    if (send !== undefined) this.#history.sendOk(send, { partition, offset })
  }

  #deliver(process: string, { record }: DriverEvent): void {
    if (record === undefined) return
    const { partition, offset, key } = record
    const held = this.#held.get(process) ?? []
    this.#held.set(process, held)
    // What one member has of a partition was handed over together.
    const place = `${process} ${partition}`
    if (!held.some((each) => each.partition === partition)) this.#batchOf.set(place, this.#batches++)
    const given = { topic: this.#topic, partition, offset, key, value: record.value ?? '' }
    const batch = this.#batchOf.get(place) ?? null
    const delivery = this.#history.deliver(this.#group, process, given, 1, batch)
    held.push({ delivery, partition, offset })
  }

  #commit(process: string, { partition, offset }: Place): void {
    this.#settle(process, 'ack', (each) => each.partition === partition && each.offset < offset)
    this.#history.commit(this.#group, this.#topic, partition, offset)
  }

  #release(process: string): void {
    this.#settle(process, 'release', () => true)
  }

  #settle(process: string, how: 'ack' | 'release', isMeant: (held: Held) => boolean): void {
    const held = this.#held.get(process) ?? []
    for (const each of held.filter(isMeant)) this.#history.settle(each.delivery, how)
    this.#held.set(
      process,
      held.filter((each) => !isMeant(each)),
    )
  }

  /** Whether the process heard of it before it did anything else. */
  #isAnswered(process: string, { partition, offset }: Place, index: number): boolean {
    const next = this.#moments.slice(index + 1).find((each) => each.process === process)
    const committed = next?.event.committed as Place | undefined
    return committed?.partition === partition && committed.offset === offset
  }

  #cameAgain({ partition, offset }: Place, index: number): boolean {
    return this.#moments.slice(index + 1).some(({ event: { record } }) => {
      return record !== undefined && record.partition === partition && record.offset < offset
    })
  }
}
