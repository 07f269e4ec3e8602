/** Short words for histories written by hand: one topic `t`, one group `g`, mostly one partition. */

import { type GroupRules, History, type Settlement, type Token } from '../../src/testing/history.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'

export class Script {
  readonly history: History = new History()

  /** Kinds of anomaly, in order. */
  kinds(): string[] {
    return checkHistory(this.history).map((anomaly) => anomaly.kind)
  }

  sent(value: Token, offset: number, { by = 'p', partition = 0 } = {}): void {
    this.history.sendOk(this.history.send(by, 't', value), { partition, offset })
  }

  failed(value: Token): void {
    this.history.fail(this.history.send('p', 't', value))
  }

  unknown(value: Token): void {
    this.history.unknown(this.history.send('p', 't', value))
  }

  /** `[offset, value]` each. */
  polled(process: string, ...records: [number, Token][]): void {
    const seen = records.map(([offset, value]) => ({ topic: 't', partition: 0, offset, value }))
    this.history.pollOk(this.history.poll(process), seen)
  }

  scanned(from: number, to: number, ...records: [number, Token][]): void {
    const seen = records.map(([offset, value]) => ({ offset, value }))
    this.history.scanOk(this.history.scan('t', 0), from, to, seen)
  }

  evicted(start: number): void {
    this.history.evict('t', 0, start)
  }

  /** Sends `v0`, `v1`, … to offsets 0 and on. */
  log(records: number): void {
    for (let offset = 0; offset < records; offset++) this.sent(`v${offset}`, offset)
  }

  group(rules: GroupRules, start = 0): void {
    this.history.group('g', rules)
    this.reset(start)
  }

  reset(offset: number): void {
    this.history.resetOk(this.history.reset('g', 't', 0), offset)
  }

  deliver(
    offset: number,
    { to = 'm', attempt = 1, key = null as Token | null, batch = null as number | null, partition = 0 } = {},
  ): number {
    const value = partition === 0 ? `v${offset}` : `v${offset} of ${partition}`
    const record = { topic: 't', partition, offset, value, key }
    return this.history.deliver('g', to, record, attempt, batch)
  }

  settle(how: Settlement, ...deliveries: number[]): void {
    for (const delivery of deliveries) this.history.settle(delivery, how)
  }

  acked(...offsets: number[]): void {
    for (const offset of offsets) this.settle('ack', this.deliver(offset))
  }

  deadLettered(offset: number): void {
    this.history.deadLetter('g', 't', 0, offset)
  }

  dropped(from: number, to: number, count = to - from + 1): void {
    this.history.drop('g', 't', 0, from, to, count)
  }

  committed(offset: number): void {
    this.history.commit('g', 't', 0, offset)
  }

  left(member = 'm'): void {
    this.history.leave('g', member)
  }

  drained(): void {
    this.history.drained('g')
  }

  crashed(): void {
    this.history.crash()
  }

  closed(): void {
    this.history.close()
  }
}

/** A history that must be found wrong, of exactly one kind, once, or sound. */
export interface Case {
  readonly title: string
  readonly write: (s: Script) => void
}
