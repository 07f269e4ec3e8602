import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DeliveryRecord } from '../../src/core/delivery.ts'
import { KeyChains } from '../../src/core/key-chains.ts'
import { recordAt } from '../support/rows.ts'

const utf8 = new TextEncoder()

/** One list of records per key. */
class Model {
  readonly lists = new Map<string, DeliveryRecord[]>()
  #offset = 0

  pick(n: number): DeliveryRecord | undefined {
    const all = [...this.lists.values()].flat()
    return all[n % Math.max(1, all.length)]
  }

  add(key: string | null): DeliveryRecord {
    const record = recordAt(this.#offset++, key)
    if (key !== null) this.lists.set(key, [...this.#of(record), record])
    return record
  }

  /** The record that is now the oldest of its key. */
  remove(record: DeliveryRecord): DeliveryRecord | undefined {
    const list = this.#of(record)
    list.splice(list.indexOf(record), 1)
    if (list.length === 0) this.lists.delete(record.key as string)
    return list[0]
  }

  replace(record: DeliveryRecord): DeliveryRecord {
    const successor = recordAt(record.offset, record.key, record.attempt + 1)
    const list = this.#of(record)
    list[list.indexOf(record)] = successor
    return successor
  }

  #of(record: DeliveryRecord): DeliveryRecord[] {
    return this.lists.get(record.key as string) ?? []
  }
}

describe('key chains', () => {
  it('let the oldest record of a key go first, and the next when it has settled', () => {
    const chains = new KeyChains()
    const [a1, b1, a2, a3] = ['a', 'b', 'a', 'a'].map((key, i) => recordAt(i, key)) as [
      DeliveryRecord,
      DeliveryRecord,
      DeliveryRecord,
      DeliveryRecord,
    ]
    for (const record of [a1, b1, a2, a3]) chains.add(record)
    expect([a1, b1, a2, a3].map((record) => chains.isBehind(record))).toEqual([false, false, true, true])
    expect(chains.last('a')).toBe(a3)
    expect(chains.remove(a1)).toBe(a2)
    expect(chains.isBehind(a2)).toBe(false)
    expect(chains.remove(b1)).toBeUndefined()
    expect(chains.size).toBe(1)
  })

  it('leave keyless records free', () => {
    const chains = new KeyChains()
    const [one, two] = [recordAt(0), recordAt(1)]
    chains.add(one)
    chains.add(two)
    expect(chains.size).toBe(0)
    expect([chains.isBehind(two), chains.remove(one)]).toEqual([false, undefined])
    chains.replace(one, two)
    expect(chains.size).toBe(0)
  })

  it('take a string and its UTF-8 bytes for the same key', () => {
    const chains = new KeyChains()
    const [text, bytes] = [recordAt(0, 'ключ'), recordAt(1, utf8.encode('ключ'))]
    chains.add(text)
    chains.add(bytes)
    expect(chains.isBehind(bytes)).toBe(true)
    expect(chains.remove(text)).toBe(bytes)
  })

  it('find a record again whose key somebody has scribbled over', () => {
    const chains = new KeyChains()
    const key = utf8.encode('before')
    const [first, second] = [recordAt(0, key), recordAt(1, 'before')]
    chains.add(first)
    chains.add(second)
    key.set(utf8.encode('AFTER!'))
    expect(chains.remove(first)).toBe(second)
    expect(chains.remove(second)).toBeUndefined()
    expect(chains.size).toBe(0)
  })

  it('know nobody after they were cleared', () => {
    const chains = new KeyChains()
    chains.add(recordAt(0, 'a'))
    chains.clear()
    expect([chains.size, chains.last('a')]).toEqual([0, undefined])
  })

  it('agree with one list per key, whatever enters, settles or is succeeded in whatever order', () => {
    const step = fc.record({
      what: fc.constantFrom('add', 'add', 'add', 'remove', 'replace'),
      key: fc.constantFrom('a', 'b', 'c', null),
      pick: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const chains = new KeyChains()
        const model = new Model()
        for (const { what, key, pick } of steps) {
          const chosen = model.pick(pick)
          if (what === 'add') chains.add(model.add(key))
          else if (chosen === undefined) continue
          else if (what === 'remove') expect(chains.remove(chosen)).toBe(model.remove(chosen))
          else {
            chains.replace(chosen, model.replace(chosen))
            expect(chains.isBehind(chosen)).toBe(false)
          }
          expect(chains.size).toBe(model.lists.size)
          for (const [name, records] of model.lists) {
            expect(chains.last(name)).toBe(records.at(-1))
            for (const record of records) expect(chains.isBehind(record)).toBe(record !== records[0])
          }
        }
      }),
    )
  })
})
