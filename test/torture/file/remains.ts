/**
 * What is left after a power loss under durability `os`, where the newest records may go. Of everything that a life was
 * told is in, in the order in which it was told, what survives is a prefix, and what is gone was young:
 *
 *   told   ├─ a ─ b ─ c ─ d ─ e ─ f ─┤ crash       nothing that was sent after the first lost one was told survives
 *   there  ├─ a ─ b ─ c ─┤                         the first lost one is at most `flushMs` older than the crash
 *
 * The next life begins a history of its own, with what it finds.
 */
import type { Broker } from '../../../src/broker.ts'
import type { Position } from '../../../src/model/options.ts'
import type { HistoryEvent, SendEvent } from '../../../src/testing/history.ts'
import { GROUP_PLACES, NACKS } from './crew.ts'
import { IMPORTED } from './judge.ts'
import { LATEST_TOPIC } from './latest.ts'
import type { Entry, Fact, Ledger } from './ledger.ts'
import { ID_TOPIC, type Left, placeName } from './left.ts'
import { PASSING } from './look.ts'
import { tokenOf } from './values.ts'

interface Found {
  readonly position: Position
  readonly key: string | null
}

/** Records by topic and token, and what retention has left of each partition. */
interface Stock {
  readonly records: ReadonlyMap<string, ReadonlyMap<string, Found>>
  readonly starts: ReadonlyMap<string, number>
}

export class Remains {
  /** When each event of the life was told, in milliseconds of its clock. */
  #times: number[] = []
  #crash: { readonly atMs: number; maxAgeMs: number } | null = null
  /** Transactions of all lives. */
  readonly #together: Extract<Fact, { fact: 'together' }>[] = []
  #stock: Stock | null = null

  told(entry: Entry, ms: number): void {
    if ('fact' in entry) {
      if (entry.fact === 'together') this.#together.push(entry)
    } else this.#times[entry.index] = ms
  }

  /** `maxAgeMs`: how old may be what is lost. A process that recovers, and dies, has nothing to lose of its own. */
  crashed(atMs: number, maxAgeMs: number): void {
    this.#crash ??= { atMs, maxAgeMs }
    this.#crash.maxAgeMs = Math.max(this.#crash.maxAgeMs, maxAgeMs)
  }

  /** Notes in the ledger of the life that is over what is not as it may be. */
  async compare(broker: Broker, ledger: Ledger): Promise<void> {
    const stock = await stockOf(broker)
    this.#stock = stock
    const { events } = ledger.history
    let firstLost: HistoryEvent | undefined
    for (const event of events) {
      if (event.type !== 'send-ok') continue
      const send = events[event.of] as SendEvent
      if (event.position !== null && this.#isEvicted(send.topic, event.position)) continue
      if (event.position === null && send.topic === 'window') continue
      const found = stock.records.get(send.topic)?.get(String(send.value))
      if (found === undefined) firstLost ??= event
      else if (event.position !== null && !isSame(found.position, event.position))
        ledger.fault(
          `${send.value} of ${send.topic} has moved from ${show(event.position)} to ${show(found.position)}`,
        )
    }
    if (firstLost !== undefined) this.#judgeLoss(ledger, firstLost)
    this.#judgeTogether(ledger)
  }

  #isEvicted(topic: string, { partition, offset }: Position): boolean {
    return offset < (this.#stock?.starts.get(`${topic}/${partition}`) ?? 0)
  }

  #judgeLoss(ledger: Ledger, first: HistoryEvent): void {
    const { events } = ledger.history
    const { atMs, maxAgeMs } = this.#crash ?? { atMs: 0, maxAgeMs: 0 }
    const lost = events[(first as { of: number }).of] as SendEvent
    const ageMs = atMs - (this.#times[first.index] ?? Number.NEGATIVE_INFINITY)
    if (maxAgeMs === 0) ledger.fault(`${lost.value} of ${lost.topic} is lost, and the power was never gone`)
    else if (lost.process === IMPORTED)
      ledger.fault(`${lost.value} of ${lost.topic} is lost, and had survived before`)
    else if (ageMs > maxAgeMs)
      ledger.fault(
        `${lost.value} of ${lost.topic} is lost, ${ageMs} ms after it was in, and not ${maxAgeMs} at most`,
      )
    for (const event of events.slice(first.index)) {
      if (event.type !== 'send') continue
      if (this.#stock?.records.get(event.topic)?.has(String(event.value)) !== true) continue
      if (event.topic === ID_TOPIC && events.some((other) => isEarlier(other, event, first.index))) continue
      ledger.fault(
        `${event.value} of ${event.topic} is there, and ${lost.value} of ${lost.topic}, which was in before, is not`,
      )
      return
    }
  }

  #judgeTogether(ledger: Ledger): void {
    for (const { parts } of this.#together) {
      const lasting = parts.filter(([topic]) => topic !== 'window')
      const there = lasting.filter(([topic, token]) => this.#stock?.records.get(topic)?.has(token) === true)
      if (there.length > 0 && there.length < lasting.length)
        ledger.fault(
          `of a transaction only ${JSON.stringify(there)} is there, not all of ${JSON.stringify(lasting)}`,
        )
    }
  }

  /** What is there, as the beginning of another history. */
  begin(ledger: Ledger, life: number): Left {
    this.#times = []
    this.#crash = null
    const ids: [string, Position][] = []
    for (const [topic, records] of this.#stock?.records ?? []) {
      for (const [token, { position, key }] of records) {
        ledger.history.sendOk(ledger.history.send(IMPORTED, topic, token, key), position)
        if (topic === ID_TOPIC) ids.push([token, position])
      }
    }
    // What was in somebody's hands at those, or was given back, is handed out again, and counts that.
    for (let i = 0; i < life + NACKS; i++) ledger.history.crash()
    // Whoever was put to its beginning may have forgotten that, and where it is now is not known.
    return {
      life,
      placed: GROUP_PLACES.map(([name, topic, partition]) => placeName(name, topic, partition)),
      ids,
      topics: [],
    }
  }
}

/** Whether an id was sent before it was sent again. */
function isEarlier(other: HistoryEvent, event: SendEvent, before: number): boolean {
  return (
    other.type === 'send' &&
    other.index < before &&
    other.topic === event.topic &&
    other.value === event.value
  )
}

async function stockOf(broker: Broker): Promise<Stock> {
  const records = new Map<string, Map<string, Found>>()
  const starts = new Map<string, number>()
  for (const topic of broker.listTopics()) {
    if (topic.startsWith(PASSING) || topic.startsWith('dlq.') || topic === LATEST_TOPIC) continue
    const found = new Map<string, Found>()
    records.set(topic, found)
    for (const { partition, start } of broker.describe(topic).partitions) {
      starts.set(`${topic}/${partition}`, start)
      for (const record of await broker.read(topic, partition)) {
        const key = typeof record.key === 'string' ? record.key : null
        found.set(tokenOf(record.value) ?? '', { position: { partition, offset: record.offset }, key })
      }
    }
  }
  return { records, starts }
}

function isSame(one: Position, other: Position): boolean {
  return one.partition === other.partition && one.offset === other.offset
}

function show({ partition, offset }: Position): string {
  return `${partition}/${offset}`
}
