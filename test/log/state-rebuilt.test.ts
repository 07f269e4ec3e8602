import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeMarker, encodeMarker } from '../../src/log/format/control.ts'
import { encodeBatch, producerOf, readHeader } from '../../src/log/format/record-batch.ts'
import { PartitionState } from '../../src/log/state.ts'
import type { ProducerInfo } from '../../src/model/batch.ts'
import { Columns } from '../../src/model/batch.ts'
import { defaultCodec } from '../../src/model/value-codec.ts'
import { codeOf } from './format/helpers.ts'

const NOW = 1_700_000_000_000

/** What somebody does to a partition; sequences are the right ones. */
type Step =
  | { readonly does: 'append'; readonly id: number; readonly count: number; readonly transactional: boolean }
  | { readonly does: 'end'; readonly id: number; readonly commit: boolean; readonly bump: boolean }
  | { readonly does: 'anonymous'; readonly count: number }

const id = fc.integer({ min: 1, max: 4 })
const count = fc.integer({ min: 1, max: 3 })
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ does: fc.constant('append' as const), id, count, transactional: fc.boolean() }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        does: fc.constant('end' as const),
        id,
        commit: fc.boolean(),
        bump: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ does: fc.constant('anonymous' as const), count }) },
  ),
  { maxLength: 40 },
)

interface Transaction {
  readonly producerId: number
  readonly first: number
  marker: number
  commit: boolean
}

/** The log as bytes, its state, and the transactions in it, found by the definition. */
class Run {
  readonly state = new PartitionState()
  readonly batches: Uint8Array[] = []
  readonly transactions: Transaction[] = []
  readonly #sequences = new Map<number, { epoch: number; next: number }>()
  end = 0

  play(step: Step): void {
    if (step.does === 'anonymous') this.#write(step.count, null)
    else if (step.does === 'append') this.#append(step.id, step.count, step.transactional)
    else this.#finish(step.id, step.commit, step.bump)
  }

  #append(producerId: number, count: number, transactional: boolean): void {
    const at = this.#sequenceOf(producerId)
    const producer = { id: producerId, epoch: at.epoch, sequence: at.next, transactional }
    const verdict = this.state.check(producer, count)
    const open = this.#openOf(producerId)
    expect(verdict).toBe(open !== undefined && !transactional ? 'INVALID' : 'ok')
    if (verdict !== 'ok') return
    if (transactional && open === undefined) {
      this.transactions.push({ producerId, first: this.end, marker: Number.POSITIVE_INFINITY, commit: false })
    }
    at.next += count
    this.#write(count, producer)
  }

  #finish(producerId: number, commit: boolean, bump: boolean): void {
    const at = this.#sequenceOf(producerId)
    if (bump) Object.assign(at, { epoch: at.epoch + 1, next: 0 })
    expect(this.state.checkMarker(producerId, at.epoch)).toBe('ok')
    const open = this.#openOf(producerId)
    if (open !== undefined) Object.assign(open, { marker: this.end, commit })
    const options = {
      baseOffset: this.end,
      leaderEpoch: 0,
      producerId,
      producerEpoch: at.epoch,
      timestamp: NOW,
    }
    this.batches.push(encodeMarker({ commit, coordinatorEpoch: 0 }, options))
    this.state.marker(producerId, at.epoch, commit, this.end++, NOW)
  }

  #write(count: number, producer: ProducerInfo | null): void {
    const rows = new Columns(this.end)
    for (let i = 0; i < count; i++) rows.push('x', null, null, NOW, 0)
    const options = { baseOffset: this.end, leaderEpoch: 0, producer }
    this.batches.push(encodeBatch(rows, 0, count, defaultCodec, options))
    this.end += count
    if (producer !== null) this.state.appended(producer, this.end - count, this.end - 1, NOW)
  }

  #openOf(producerId: number): Transaction | undefined {
    return this.transactions.find((each) => each.producerId === producerId && each.marker > this.end)
  }

  #sequenceOf(producerId: number): { epoch: number; next: number } {
    const known = this.#sequences.get(producerId) ?? { epoch: 0, next: 0 }
    this.#sequences.set(producerId, known)
    return known
  }
}

/** What a log does at open with every batch that its snapshot does not cover. */
function replay(state: PartitionState, batches: readonly Uint8Array[]): PartitionState {
  for (const bytes of batches) {
    const header = readHeader(bytes, 0)
    const producer = producerOf(header)
    if (producer === null) continue
    const { baseOffset, lastOffsetDelta, maxTimestamp } = header
    if (!header.control) state.appended(producer, baseOffset, baseOffset + lastOffsetDelta, maxTimestamp)
    else {
      const { commit } = decodeMarker(bytes, 0) as { commit: boolean }
      state.marker(producer.id, producer.epoch, commit, baseOffset, maxTimestamp)
    }
  }
  return state
}

describe('the state of a partition', () => {
  it('stops readers below every transaction whose outcome is not durable, and no lower', () => {
    fc.assert(
      fc.property(steps, fc.array(fc.nat(100), { maxLength: 5 }), (all, highs) => {
        const run = new Run()
        for (const step of all) run.play(step)
        for (const high of [...highs, run.end].map((each) => Math.min(each, run.end)).sort((a, b) => a - b)) {
          const undecided = run.transactions.filter(({ marker }) => marker >= high).map(({ first }) => first)
          expect(run.state.stable(high)).toBe(Math.min(high, ...undecided))
        }
      }),
      { numRuns: 300 },
    )
  })

  it('knows exactly the aborted transactions that touch a range', () => {
    fc.assert(
      fc.property(steps, fc.nat(80), fc.nat(40), (all, from, length) => {
        const to = from + length
        const run = new Run()
        for (const step of all) run.play(step)
        const touching = run.transactions
          .filter(
            ({ first, marker, commit }) => Number.isFinite(marker) && !commit && marker >= from && first < to,
          )
          .map(({ producerId, first }) => ({ producerId, firstOffset: first }))
        expect(run.state.aborted(from, to)).toEqual(touching)
      }),
      { numRuns: 300 },
    )
  })

  it('is the same again from the headers alone, or from a snapshot and the headers after it', () => {
    fc.assert(
      fc.property(steps, fc.nat(40), (all, cut) => {
        const run = new Run()
        let snapshot = JSON.stringify(run.state)
        let covered = 0
        for (const [i, step] of all.entries()) {
          run.play(step)
          if (i !== cut) continue
          snapshot = JSON.stringify(run.state)
          covered = run.batches.length
        }
        const live = run.state.toJSON()
        expect(replay(new PartitionState(), run.batches).toJSON()).toEqual(live)
        const restored = PartitionState.fromJSON(JSON.parse(snapshot))
        expect(replay(restored, run.batches.slice(covered)).toJSON()).toEqual(live)
        expect(restored.stable(run.end)).toBe(run.state.stable(run.end))
        expect([...restored.producers()]).toEqual([...run.state.producers()])
      }),
      { numRuns: 200 },
    )
  })
})

describe('a snapshot', () => {
  const good = () => {
    const state = new PartitionState()
    state.appended({ id: 1, epoch: 0, sequence: 0, transactional: true }, 0, 0, NOW)
    state.marker(1, 0, false, 1, NOW)
    state.epochStarted(3, 0)
    return JSON.parse(JSON.stringify(state)) as Record<string, Record<string, unknown>[]>
  }

  it('is not touched by what happens after it', () => {
    const state = PartitionState.fromJSON(good())
    const snapshot = state.toJSON()
    const before = JSON.stringify(snapshot)
    state.appended({ id: 1, epoch: 0, sequence: 1, transactional: true }, 2, 2, NOW)
    state.marker(1, 1, false, 3, NOW)
    state.epochStarted(4, 4)
    expect(JSON.stringify(snapshot)).toBe(before)
  })

  it('keeps open transactions in the order in which they began', () => {
    const state = new PartitionState()
    state.appended({ id: 1, epoch: 0, sequence: 0, transactional: true }, 0, 0, NOW)
    state.appended({ id: 2, epoch: 0, sequence: 0, transactional: true }, 1, 1, NOW)
    state.appended({ id: 1, epoch: 0, sequence: 1, transactional: true }, 2, 2, NOW)
    const restored = PartitionState.fromJSON(JSON.parse(JSON.stringify(state)))
    expect(restored.stable(3)).toBe(0)
    restored.marker(1, 0, true, 3, NOW)
    expect(restored.stable(4)).toBe(1)
  })

  it.each([
    ['nothing', () => null],
    ['a text', () => 'state'],
    ['another version', () => ({ ...good(), version: 2 })],
    ['no producers', () => ({ ...good(), producers: undefined })],
    ['a producer that is no object', () => ({ ...good(), producers: [7] })],
    [
      'a producer without an epoch',
      () => ({ ...good(), producers: [{ ...good().producers?.[0], epoch: null }] }),
    ],
    [
      'a producer without batches',
      () => ({ ...good(), producers: [{ ...good().producers?.[0], batches: {} }] }),
    ],
    [
      'a batch of halves',
      () => ({ ...good(), producers: [{ ...good().producers?.[0], batches: [{ base: 0.5 }] }] }),
    ],
    [
      'an aborted transaction without a marker',
      () => ({ ...good(), aborted: [{ producerId: 1, first: 0, stable: 2 }] }),
    ],
    ['an epoch without a start', () => ({ ...good(), epochs: [{ epoch: 3 }] })],
  ])('that is damaged is refused: %s', (_, damaged) => {
    expect(codeOf(() => PartitionState.fromJSON(damaged()))).toBe('CORRUPT_LOG')
  })
})
