/**
 * Every byte of a small data directory is turned, and its newest group is cut off after every byte, as no process but
 * the disk does it. What is served then is what was published, at its offset, or the damage is reported by file and
 * position; all that may be missing without a word is the newest group of a journal, which nothing proves to have been
 * whole. A refused directory is left as it was. A trial is one damage.
 *
 *   closed     the journal is spent: everything is in segments and the checkpoint
 *   killed     the journal has everything since the last checkpoint
 */
import type { Broker } from '../../../src/broker.ts'
import type { FileEngineOptions } from '../../../src/log/file/file-engine.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import type { Position } from '../../../src/model/options.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { Dice } from '../dice.ts'
import type { Verdict } from './judge.ts'
import { drive, openOn } from './machine.ts'
import { Report } from './report.ts'
import { contentOf, corruptionOf, tokenOf } from './values.ts'

const KiB = 1024
const FILES: FileEngineOptions = { journalBytes: 16 * KiB, segmentBytes: 1 * KiB }
const TOPIC = 't'
const PARTITIONS = 2
const RECORDS = 14
/** Of a byte that is zero in a journal: beyond its groups one is as good as another. */
const ZERO_SHARE = 1 / 50

export interface TurnOptions {
  readonly seed: number
  /** Of all bytes. */
  readonly share: number
  readonly isStopped: () => boolean
}

/** A directory, and what was published to it. */
interface Original {
  readonly fs: SimFs
  readonly positions: ReadonlyMap<string, Position>
  /** In the newest group, alone. */
  readonly newest: string
  readonly journal: { readonly file: string; readonly from: number; readonly to: number }
}

interface Damage {
  readonly what: string
  readonly file: string
  apply(fs: SimFs): void
  /** May it be taken for a group that was being written? */
  readonly isTail: boolean
}

export async function turnTrials(
  { seed, share, isStopped }: TurnOptions,
  report = new Report(),
): Promise<Report> {
  for (const end of ['closed', 'killed'] as const) {
    const dice = new Dice(seed)
    const original = await make(end)
    for (const damage of [...turns(original, dice, share), ...cuts(original, end, dice, share)]) {
      if (isStopped() || report.failures >= 5) return report
      const { faults, outcome } = await examine(original, damage)
      report.trials++
      report.note(outcome)
      report.add(verdictOf(faults), `${end}, ${damage.what}`)
    }
  }
  return report
}

type Outcome = 'refused when opened' | 'refused when read' | 'without the newest group' | 'as it was'

interface Examined {
  readonly faults: readonly string[]
  readonly outcome: Outcome
}

function verdictOf(faults: readonly string[]): Verdict {
  const corrupt = faults.filter((fault) => fault.startsWith('served')).length
  return { acked: 0, lost: 0, duplicated: 0, corrupt, faults }
}

async function make(end: 'closed' | 'killed'): Promise<Original> {
  const clock = new ManualClock()
  const fs = new SimFs({ clock })
  const positions = new Map<string, Position>()
  let journal = { file: '', from: 0, to: 0 }
  const working = (async () => {
    const { broker } = await openOn(fs, clock, FILES, () => undefined)
    await broker.createTopic(TOPIC, { partitions: PARTITIONS })
    for (let i = 0; i < RECORDS; i++) {
      const before = ['journal/a', 'journal/b'].map((file) => fs.bytesOf(file))
      const token = `${end}.${i}`
      const { value, key, headers } = contentOf(token)
      positions.set(token, await broker.publish(TOPIC, value, { key, headers, partition: i % PARTITIONS }))
      journal = changed(fs, before)
    }
    // So that segments and a checkpoint have a part of it.
    if (end === 'closed') await broker.close()
  })()
  await drive(clock, working, () => false)
  await working
  return { fs, positions, newest: `${end}.${RECORDS - 1}`, journal }
}

/** Where a journal has changed: its newest group. */
function changed(fs: SimFs, before: readonly Uint8Array[]): Original['journal'] {
  for (const [i, file] of ['journal/a', 'journal/b'].entries()) {
    const now = fs.bytesOf(file)
    const old = before[i] as Uint8Array
    const from = now.findIndex((byte, at) => byte !== old[at])
    if (from >= 0) return { file, from, to: now.findLastIndex((byte, at) => byte !== old[at]) + 1 }
  }
  throw new Error('a publish that changed no journal')
}

function* turns({ fs, journal }: Original, dice: Dice, share: number): Generator<Damage> {
  for (const file of fs.files()) {
    const bytes = fs.bytesOf(file)
    for (let at = 0; at < bytes.length; at++) {
      const spent = file.startsWith('journal/') && bytes[at] === 0
      if (!dice.chance(spent ? share * ZERO_SHARE : share)) continue
      const bit = dice.below(8)
      yield {
        what: `bit ${bit} of byte ${at} of ${file}`,
        file,
        apply: (copy) => copy.flipBit(file, at, bit),
        isTail: file === journal.file && at >= journal.from,
      }
    }
  }
}

/** Zeros from some byte of the newest group on, or garbage. */
function* cuts({ fs, journal }: Original, end: string, dice: Dice, share: number): Generator<Damage> {
  if (end === 'closed') return
  const { file, from, to } = journal
  for (let at = from; at < to; at++) {
    for (const filling of ['zeros', 'garbage'] as const) {
      if (!dice.chance(share)) continue
      const bytes = fs.bytesOf(file)
      for (let i = at; i < to; i++) bytes[i] = filling === 'zeros' ? 0 : dice.below(256)
      const apply = (copy: SimFs): void => copy.put(file, bytes)
      yield { what: `${filling} from byte ${at} of ${file} on`, file, apply, isTail: true }
    }
  }
}

/** What is not as it must be. */
async function examine(original: Original, damage: Damage): Promise<Examined> {
  const clock = new ManualClock()
  const fs = original.fs.copy({ clock })
  damage.apply(fs)
  const before = contentsOf(fs)
  const faults: string[] = []
  let first: Read | undefined
  for (let time = 0; time < 2; time++) {
    const { broker, error } = await opened(fs, clock, FILES)
    if (broker === undefined) {
      faults.push(...complaintsAbout(error, damage))
      if (contentsOf(fs) !== before) faults.push('the directory was refused, and changed')
      faults.push(...(await salvaged(original, damage, fs, clock)))
      return { faults, outcome: 'refused when opened' }
    }
    const read = await readAll(original, damage, broker, clock, faults)
    if (first !== undefined && first.text !== read.text)
      faults.push(`the second process found ${read.text}, and the first ${first.text}`)
    first = read
  }
  if (first?.isRefused) return { faults, outcome: 'refused when read' }
  return { faults, outcome: first?.isWhole ? 'as it was' : 'without the newest group' }
}

async function salvaged(
  original: Original,
  damage: Damage,
  fs: SimFs,
  clock: ManualClock,
): Promise<string[]> {
  const faults: string[] = []
  const { broker, error } = await opened(fs, clock, { ...FILES, salvage: true })
  if (broker === undefined) faults.push(...complaintsAbout(error, damage))
  else await readAll(original, damage, broker, clock, faults, 'salvage')
  return faults
}

async function opened(
  fs: SimFs,
  clock: ManualClock,
  files: FileEngineOptions,
): Promise<{ broker?: Broker; error?: unknown }> {
  const opening = openOn(fs, clock, files, () => undefined).then(
    ({ broker }) => ({ broker }),
    (error: unknown) => ({ error }),
  )
  const done = await drive(clock, opening, () => false)
  return done ? opening : { error: new Error('opening it hangs') }
}

function complaintsAbout(error: unknown, { file }: Damage): string[] {
  if (!(error instanceof OdradekError && error.code === 'CORRUPT_LOG'))
    return [`it was refused with ${String(error)}`]
  const names = error.message.includes(file) || error.message.includes(file.replace(/\.\w+$/, ''))
  return names ? [] : [`it was refused without a word of ${file}: ${error.message}`]
}

/** What a reader was served. */
interface Read {
  /** For comparison. */
  readonly text: string
  readonly isRefused: boolean
  readonly isWhole: boolean
}

async function readAll(
  { positions, newest }: Original,
  damage: Damage,
  broker: Broker,
  clock: ManualClock,
  faults: string[],
  mode: 'usual' | 'salvage' = 'usual',
): Promise<Read> {
  const served = new Set<string>()
  const refused = new Set<number>()
  const reading = (async () => {
    const partitions = broker.listTopics().includes(TOPIC) ? PARTITIONS : 0
    for (let partition = 0; partition < partitions; partition++) {
      try {
        for (const record of await broker.read(TOPIC, partition)) {
          const token = tokenOf(record.value) ?? ''
          const place = positions.get(token)
          const corruption = corruptionOf(record)
          if (corruption !== undefined) faults.push(`served: ${corruption}`)
          else if (place?.partition !== partition || place.offset !== record.offset)
            faults.push(`served: ${token} at ${partition}/${record.offset}`)
          served.add(token)
        }
      } catch (error) {
        refused.add(partition)
        faults.push(...complaintsAbout(error, damage))
      }
    }
    await broker.close().catch((error: unknown) => {
      if (!(error instanceof OdradekError)) throw error
    })
  })()
  if (!(await drive(clock, reading, () => false))) faults.push('reading it, or closing it, hangs')
  for (const [token, { partition }] of positions) {
    if (served.has(token) || refused.has(partition) || mode === 'salvage') continue
    if (!(damage.isTail && token === newest)) faults.push(`${token} is missing, and nobody said so`)
  }
  const text = `${[...served].sort().join(' ')}, refused ${[...refused].join(' ')}`
  return { text, isRefused: refused.size > 0, isWhole: served.size === positions.size }
}

function contentsOf(fs: SimFs): string {
  return fs
    .files()
    .map((path) => `${path} ${Buffer.from(fs.bytesOf(path)).toString('base64')}`)
    .join('\n')
}
