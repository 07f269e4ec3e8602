/** What users see of a disk that is full, slow, short of handles or damaged: whole brokers on a simulated one. */
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import type { FileEngineOptions } from '../../src/log/file/file-engine.ts'
import { KiB } from '../../src/model/limits.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { type Fault, SimFs, type SimOptions } from '../support/sim-fs.ts'
import { codeOf, upTo, watch } from '../support/world.ts'
import { Dice } from '../torture/dice.ts'
import { drive, openOn } from '../torture/file/machine.ts'

const LARGE = 'x'.repeat(1_000)

/** A machine whose broker is opened, and opened again. */
class Site {
  clock = new ManualClock()
  fs: SimFs
  readonly complaints: string[] = []
  readonly #files: FileEngineOptions

  constructor(files: FileEngineOptions = {}, disk: SimOptions = {}) {
    this.#files = { journalBytes: 32 * KiB, segmentBytes: 8 * KiB, ...files }
    this.fs = new SimFs({ clock: this.clock, ...disk })
  }

  async open(): Promise<Broker> {
    const complain = (error: unknown, what: string): void => {
      this.complaints.push(`${what}: ${error instanceof Error ? error.message : error}`)
    }
    return (await this.until(openOn(this.fs, this.clock, this.#files, complain))).broker
  }

  /** Lets time go by until it is done. */
  async until<T>(work: Promise<T>, patienceMs?: number): Promise<T> {
    if (!(await drive(this.clock, work, () => false, patienceMs))) throw new Error('it hangs')
    return work
  }

  /** The machine loses its power, and is there again. */
  crash(): void {
    this.clock = new ManualClock()
    this.fs = this.fs.crash({ seed: 1, share: 0, clock: this.clock })
  }
}

async function valuesOf(site: Site, broker: Broker, topic: string, partition = 0): Promise<unknown[]> {
  return (await site.until(broker.read(topic, partition))).map(({ value }) => value)
}

describe('a full disk', () => {
  it('refuses publishes with STORAGE_FULL, while everything that was accepted is read and delivered', async () => {
    const site = new Site({}, { capacityBytes: 240 * KiB })
    site.fs.put('ballast', new Uint8Array(64 * KiB))
    const broker = await site.open()
    await site.until(broker.createTopic('t'))
    const delivered: unknown[] = []
    const take = ({ value }: { readonly value: unknown }): number => delivered.push(value)
    // One that is not remembered needs nothing of the disk.
    await site.until(broker.subscribe('t', take, { from: 'earliest' }))
    const lasting: unknown[] = []
    const keep = ({ value }: { readonly value: unknown }): number => lasting.push(value)
    await site.until(broker.subscribe('t', keep, { id: 'reader', from: 'earliest' }))
    const accepted: string[] = []
    const publish = async (): Promise<string> => {
      const value = `${LARGE} ${accepted.length}`
      const code = await site.until(codeOf(broker.publish('t', value)))
      if (code.startsWith('resolved')) accepted.push(value)
      return code
    }
    let code = await publish()
    while (code.startsWith('resolved')) code = await publish()
    expect(code).toBe('STORAGE_FULL')
    expect(accepted.length).toBeGreaterThan(20)
    expect(await site.until(codeOf(broker.publish('t', LARGE)))).toBe('STORAGE_FULL')
    expect(broker.tryPublish.bind(broker, 't', LARGE)).toThrow(/disk is full/)
    await site.clock.advance(5_000)
    expect(await valuesOf(site, broker, 't')).toEqual(accepted)
    expect(delivered).toEqual(accepted)
    // What is handed out to it is stored first, which may have to wait.
    expect(lasting).toEqual(accepted.slice(0, lasting.length))
    expect(site.complaints.some((text) => text.includes('full'))).toBe(true)

    site.fs.erase('ballast')
    await site.clock.advance(2_000)
    expect(await publish()).toMatch(/^resolved/)
    await site.clock.advance(2_000)
    expect(delivered).toEqual(accepted)
    expect(lasting).toEqual(accepted)
    site.crash()
    expect(await valuesOf(site, await site.open(), 't')).toEqual(accepted)
  })

  it('is opened again once there is room, with all that was accepted', async () => {
    const site = new Site({}, { capacityBytes: 200 * KiB })
    const broker = await site.open()
    await site.until(broker.createTopic('t'))
    const accepted: string[] = []
    for (;;) {
      const value = `${accepted.length} ${LARGE}`
      if (!(await site.until(codeOf(broker.publish('t', value)))).startsWith('resolved')) break
      accepted.push(value)
    }
    // Somebody else takes what is left.
    site.fs.put('ballast', new Uint8Array(0))
    site.crash()
    const free = 200 * KiB - site.fs.usedBytes
    site.fs.put('ballast', new Uint8Array(Math.max(0, free)))
    expect(await codeOf(site.open())).toBe('STORAGE_FULL')
    site.fs.erase('ballast')
    site.fs = site.fs.copy({ capacityBytes: 400 * KiB })
    expect(await valuesOf(site, await site.open(), 't')).toEqual(accepted)
  })
})

describe('a slow disk', () => {
  it('makes publishers wait in groups, within bounds, and refuses those beyond', async () => {
    const dice = new Dice(7)
    const slow: Fault[] = []
    const site = new Site()
    const broker = await site.open()
    await site.until(broker.createTopic('t', { maxWaiting: { records: 100 }, publishTimeoutMs: 600_000 }))
    let syncs = 0
    site.fs.onOperation = (operation, path) => {
      if (operation !== 'sync' || !path.startsWith('journal/')) return undefined
      syncs++
      const fault = { delayMs: 1_000 + dice.below(4_000) }
      slow.push(fault)
      return fault
    }
    const outcomes = upTo(400).map((i) => codeOf(broker.publish('t', `${i} ${LARGE}`)))
    let most = 0
    const sampling = site.clock.setTimer(function sample() {
      const { high, end } = broker.describe('t').partitions[0] ?? { high: 0, end: 0 }
      most = Math.max(most, end - high)
    }, 500)
    await site.clock.advance(1_000)
    sampling.cancel()
    const { high, end, waiting } = broker.describe('t').partitions[0] ?? { high: 0, end: 0, waiting: 0 }
    most = Math.max(most, end - high)
    const codes = await site.until(Promise.all(outcomes), 600_000)
    const accepted = codes.filter((code) => code.startsWith('resolved')).length
    // What is accepted and not on the disk fits into a quarter of the journal, twice; who waits was told how many may.
    expect(most * LARGE.length).toBeLessThanOrEqual(32 * KiB)
    expect(waiting).toBeLessThanOrEqual(100)
    expect(new Set(codes.filter((code) => !code.startsWith('resolved')))).toEqual(
      new Set(['TOO_MANY_WAITING']),
    )
    expect(accepted).toBeGreaterThan(100)
    // A group takes as many as fit: one sync for each would have been one for each record.
    expect(syncs).toBeLessThan(accepted / 3)
    expect(await valuesOf(site, broker, 't')).toHaveLength(accepted)
  })
})

describe('few handles', () => {
  it('are enough for many topics', async () => {
    const site = new Site({ segmentBytes: 1 * KiB }, { maxOpenFiles: 10 })
    let broker = await site.open()
    const topics = upTo(25).map((i) => `t${i}`)
    for (const topic of topics) await site.until(broker.createTopic(topic, { partitions: 2 }))
    const values = upTo(6).map((i) => `${i} ${LARGE}`)
    for (const value of values) {
      await site.until(
        Promise.all(
          topics.flatMap((topic) => [0, 1].map((partition) => broker.publish(topic, value, { partition }))),
        ),
      )
    }
    for (const again of [false, true]) {
      if (again) {
        await site.until(broker.close())
        broker = await site.open()
      }
      const read = await site.until(Promise.all(topics.map((topic) => broker.read(topic, 1))))
      for (const records of read) expect(records.map(({ value }) => value)).toEqual(values)
      expect(site.fs.openFiles).toBeLessThanOrEqual(10)
    }
    expect(site.complaints).toEqual([])
  })
})

describe('a damaged segment', () => {
  it('is told of by name, served to nobody, and keeps no other partition from going on', async () => {
    const site = new Site({ segmentBytes: 2 * KiB })
    const first = await site.open()
    await site.until(first.createTopic('t', { partitions: 2 }))
    for (const i of upTo(12)) await site.until(first.publish('t', `${i} ${LARGE}`, { partition: i % 2 }))
    await site.until(first.close())
    const { id } = first.describe('t')
    const [, second] = site.fs
      .files()
      .filter((path) => path.startsWith(`logs/${id}-0/`) && path.endsWith('.log'))
    site.fs.flipBit(second as string, 500)

    const broker = await site.open()
    const delivered: string[] = []
    const take = ({ value }: { readonly value: unknown }): number =>
      delivered.push(String(value).split(' ')[0] as string)
    await site.until(broker.subscribe('t', take, { id: 'reader', from: 'earliest' }))
    const before = site.fs.operations
    await site.clock.advance(20_000)
    const sound = upTo(12).filter((i) => i % 2 === 1)
    expect(delivered.map(Number).filter((i) => i % 2 === 1)).toEqual(sound)
    expect(delivered.map(Number).filter((i) => i % 2 === 0).length).toBeLessThan(6)
    expect(site.complaints.some((text) => text.includes(`${second} is damaged at byte`))).toBe(true)
    // It is looked at now and then, not for ever without a break.
    expect(site.fs.operations - before).toBeLessThan(500)
    expect(await site.until(codeOf(broker.read('t', 0)))).toBe('CORRUPT_LOG')
    // Publishing goes on, also there.
    const published = await site.until(broker.publish('t', 'new', { partition: 0 }))
    expect(published.offset).toBe(6)
    expect(await site.until(broker.read('t', 0, 6))).toHaveLength(1)
    const waiting = watch(broker.close({ drainMs: 100 }))
    await site.clock.advance(1_000)
    expect(waiting.state).toBe('resolved')
  })
})
