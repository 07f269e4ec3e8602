/**
 * What the report says that opening would do, opening does: to directories that programs have left at any moment, sound
 * and spoilt.
 */
import { describe, expect, it } from 'vitest'
import { type Inspection, readDirectory } from '../../../src/log/file/inspect.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import type { SimFs } from '../../support/sim-fs.ts'
import { Dice } from '../../torture/dice.ts'
import { changesOf, contentOf, leftBy, type Recovery, recovered, spoil } from './inspect-kit.ts'

async function reportOf(fs: SimFs): Promise<Inspection> {
  const before = contentOf(fs)
  const changes = changesOf(fs)
  const { report } = await readDirectory({ fs, crc32c })
  expect(changes).toEqual([])
  expect(contentOf(fs)).toEqual(before)
  expect(fs.openFiles).toBe(0)
  return report
}

function namesOf(changes: readonly (readonly [string, string])[], operation: string): string[] {
  return changes.filter(([each]) => each === operation).map(([, path]) => path)
}

async function hold(fs: SimFs, salvage: boolean): Promise<Inspection['recovery']['outcome']> {
  const { recovery, logs, journal } = await reportOf(fs.copy())
  const before = new Map(contentOf(fs))
  const done = await recovered(fs, salvage)
  const refusal = recovery.refusals.find(({ salvageable }) => !(salvageable && salvage))
  expect(done.error?.message).toBe(refusal?.message)
  if (refusal !== undefined) {
    expect(done.changes).toEqual([])
    expect(new Map(contentOf(fs))).toEqual(before)
    return 'refuse'
  }
  const places = logs.map(({ topicId, partition, start, end, epoch }) => {
    return [`${topicId}/${partition}`, start as number, end as number, epoch as number] as const
  })
  places.sort()
  // Which segments salvage writes anew shows only when they are read, which the report does not do.
  if (done.findings.some((finding) => finding.includes('logs/'))) {
    const spans = (all: Recovery['logs']): unknown => all.map(([name, start, end]) => [name, start, end])
    expect(spans(done.logs)).toEqual(spans(places))
    return 'recover'
  }
  const { aside } = recovery
  const copies = aside.map(({ copy }) => copy)
  // What is replayed makes files anew, each after a remove, and indexes, which are a cache.
  const removed = new Set(
    namesOf(done.changes, 'remove').filter((path) => before.has(path) || copies.includes(path)),
  )
  expect([...removed]).toEqual(expect.arrayContaining([...copies, ...recovery.remove]))
  const others = [...removed].filter((path) => !recovery.remove.includes(path) && !copies.includes(path))
  expect(others.filter((path) => !path.endsWith('.index'))).toEqual([])
  // A file that is cut may be written to again, and then sealed: no more is cut.
  expect(new Set(namesOf(done.changes, 'truncate'))).toEqual(new Set(recovery.cut.map(({ file }) => file)))
  for (const { file, position, sizeBytes, copy } of aside) {
    const bytes = Buffer.from(before.get(file) as string, 'base64').subarray(position)
    expect(Buffer.from(fs.bytesOf(copy)).equals(bytes.subarray(0, sizeBytes))).toBe(true)
    expect(bytes.subarray(sizeBytes).every((byte) => byte === 0)).toBe(true)
  }
  for (const { file, fromBytes } of recovery.cut) {
    expect(Buffer.from(before.get(file) as string, 'base64').length).toBe(fromBytes)
  }
  expect(done.logs).toEqual(places)
  if (recovery.outcome === 'nothing') expect(done.changes).toEqual([])
  expect(recovery.replay.groups).toBe(journal?.groups)
  return recovery.outcome
}

describe('what the report says of opening', () => {
  it.each(['fsync', 'os'] as const)(
    'is what opening does, wherever a program was stopped (%s)',
    async (durability) => {
      const outcomes = { nothing: 0, recover: 0, refuse: 0 }
      for (let stop = 1; stop < 260; stop += 6) {
        const fs = await leftBy(stop % 7, { durability, stop })
        try {
          outcomes[await hold(fs, false)]++
        } catch (error) {
          throw new Error(`stopped at operation ${stop}`, { cause: error })
        }
      }
      expect(outcomes.refuse).toBe(0)
      expect(outcomes.recover).toBeGreaterThan(15)
      expect(outcomes.nothing).toBeGreaterThan(0)
    },
  )

  it.each([false, true])(
    'is what opening does, whatever happened to a file (salvage: %s)',
    async (salvage) => {
      const outcomes = { nothing: 0, recover: 0, refuse: 0 }
      const lefts = new Map<number, SimFs>()
      for (const stop of [0, 60, 100, 140, 180, 220]) {
        lefts.set(stop, await leftBy(3, stop === 0 ? {} : { stop }))
      }
      for (let seed = 1; seed <= 250; seed++) {
        const dice = new Dice(seed)
        const stop = dice.pick([...lefts.keys()])
        const fs = (lefts.get(stop) as SimFs).copy()
        const what = spoil(fs, dice)
        try {
          outcomes[await hold(fs, salvage)]++
        } catch (error) {
          throw new Error(`seed ${seed}, stopped at operation ${stop}: ${what}`, { cause: error })
        }
      }
      expect(Object.values(outcomes).every((count) => count > 10)).toBe(true)
    },
  )
})
