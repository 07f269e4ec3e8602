/** What the next process on a directory must know of those before it, to go on with the same history. */
import type { Position } from '../../../src/model/options.ts'
import type { HistoryEvent, SendEvent } from '../../../src/testing/history.ts'
import type { Noted, TopicState } from './ledger.ts'

export interface Left {
  /** How many processes there were. */
  readonly life: number
  /** Groups that were put somewhere, as `placeName`. */
  readonly placed: readonly string[]
  /** Publish ids that were used, and the position that was answered, if one was. */
  readonly ids: readonly (readonly [token: string, position: Position | null])[]
  /** Of topics that come and go, the newest thing that was tried, or known to have happened. */
  readonly topics: readonly (readonly [topic: string, state: TopicState])[]
}

export const NOTHING_LEFT: Left = { life: 0, placed: [], ids: [], topics: [] }

/** The topic whose records carry publish ids. */
export const ID_TOPIC = 'unique'

export function placeName(group: string, topic: string, partition: number): string {
  return `${group}/${topic}/${partition}`
}

export function leftBy(life: number, events: readonly HistoryEvent[], facts: readonly Noted[]): Left {
  const placed: string[] = []
  const ids = new Map<string, Position | null>()
  for (const event of events) {
    if (event.type === 'reset') placed.push(placeName(event.group, event.topic, event.partition))
    if (event.type === 'send' && event.topic === ID_TOPIC && !ids.has(String(event.value)))
      ids.set(String(event.value), null)
    if (event.type !== 'send-ok' || event.position === null) continue
    const send = events[event.of] as SendEvent
    if (send.topic === ID_TOPIC) ids.set(String(send.value), event.position)
  }
  const topics = new Map<string, TopicState>()
  for (const { fact } of facts) if (fact.fact === 'topic') topics.set(fact.topic, fact.state)
  return { life, placed, ids: [...ids], topics: [...topics] }
}
