/** The suite must find what it is for: each of these engines breaks one clause of the contract. */
import { describe, expect, it } from 'vitest'
import {
  type Engine,
  LOG_CLOSED,
  type LogSpec,
  type Meta,
  type PartitionLog,
} from '../../src/log/contract.ts'
import { fileEngine } from '../../src/log/file/file-engine.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { logConformance } from '../../src/testing/log-conformance.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { SimFs, type SimOptions } from '../support/sim-fs.ts'

type Fault = (log: PartitionLog) => Partial<PartitionLog>

const newEngine = (): Engine => memoryEngine({ clock: new ManualClock() })

/** The target with some of its members replaced. */
function replaced<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get(_, name) {
      const owner = name in members ? members : target
      const member: unknown = Reflect.get(owner, name, owner)
      return typeof member === 'function' ? member.bind(owner) : member
    },
  })
}

function withFault(fault: Fault): Engine {
  const engine = newEngine()
  return replaced(engine, {
    openLog: async (spec) => {
      const log = await engine.openLog(spec)
      return replaced(log, fault(log))
    },
  })
}

function withMeta(fault: (meta: Meta) => Partial<Meta>): Engine {
  const engine = newEngine()
  return replaced(engine, { meta: replaced(engine.meta, fault(engine.meta)) })
}

async function failuresOf(makeEngine: () => Engine): Promise<string[]> {
  const failed: string[] = []
  for (const { title, run } of logConformance('faulty', async () => makeEngine())) {
    try {
      await run()
    } catch (error) {
      failed.push(`${title}: ${String(error)}`)
    }
  }
  return failed
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'a gate that holds nothing': () => ({ gate() {} }),
  'room that is always there': () => ({ hasRoom: () => true }),
  'room that is never there': () => ({ hasRoom: () => false }),
  'an append that ignores its mode': (log) => ({
    tryAppendOne: (value, key, headers, timestamp, size) =>
      log.tryAppendOne(value, key, headers, timestamp, size),
  }),
  'an append by force': (log) => ({
    tryAppendOne: (value, key, headers, timestamp, size) =>
      log.tryAppendOne(value, key, headers, timestamp, size, 'force'),
  }),
  'a refused batch that was evicted for': (log) => ({
    tryAppend(batch, mode) {
      const answer = log.tryAppend(batch, mode)
      if (answer === 'NO_ROOM') void log.trim(log.marks.start + 1)
      return answer
    },
  }),
  'keys that are lost': (log) => ({
    tryAppendOne: (value, _key, headers, timestamp, size, mode) =>
      log.tryAppendOne(value, null, headers, timestamp, size, mode),
  }),
  'duplicates that are not said to be': (log) => ({
    tryAppend(batch, mode) {
      const answer = log.tryAppend(batch, mode)
      return typeof answer === 'object' ? { ...answer, duplicate: false } : answer
    },
  }),
  'markers that are shown': (log) => ({
    peek: (from, max, _isolation, into) => log.peek(from, max, 'uncommitted', into),
  }),
  'peeks beyond what was asked for': (log) => ({
    peek: (from, max, isolation, into) => log.peek(from, max + 1, isolation, into),
  }),
  'loads without a limit': (log) => ({
    load: (from, _max, isolation, signal) => log.load(from, 1e9, isolation, signal),
  }),
  'reads that ignore isolation': (log) => ({
    read: (from, max, _isolation, signal) => log.read(from, max, 'uncommitted', signal),
  }),
  'reads without a limit': (log) => ({
    read: (from, _max, isolation, signal) => log.read(from, 1e9, isolation, signal),
  }),
  'aborted transactions that are not named': (log) => ({
    read: async (from, max, isolation, signal) => ({
      ...(await log.read(from, max, isolation, signal)),
      aborted: [],
    }),
  }),
  'reads that cannot be aborted': (log) => ({
    load: (from, max, isolation) => log.load(from, max, isolation),
  }),
  'nobody woken': () => ({ onAdvance: () => () => {} }),
  'a wake that cannot be stopped': (log) => ({
    onAdvance(wake) {
      log.onAdvance(wake)
      return () => {}
    },
  }),
  'marks that are copies': (log) => ({
    get marks() {
      return { ...log.marks }
    },
  }),
  'limits that never change': () => ({ configure() {} }),
  'records that never expire': () => ({ expire() {} }),
  'records that expire a moment early': (log) => ({ expire: (now) => log.expire(now + 1) }),
  'a trim that does nothing': () => ({ trim: async () => {} }),
  'a trim that goes too far': (log) => ({ trim: (before) => log.trim(before + 1) }),
  'times that are found a moment late': (log) => ({ offsetAt: (timestamp) => log.offsetAt(timestamp + 1) }),
  'no newest time': () => ({ newest: async () => undefined }),
  'an end for every epoch': (log) => ({ epochEnd: (epoch) => ({ epoch, endOffset: log.marks.end }) }),
  'producers that are not listed': () => ({ producers: () => [] }),
  'a close that does not close': () => ({ close: async () => {} }),
  'bytes that are not counted': () => ({ sizeBytes: 0 }),
}

/** What becomes of an engine on a disk when its process ends. */
interface Loss {
  readonly disk?: SimOptions
  /** The engine of the next process, in place of what it would be. */
  readonly next?: (engine: Engine) => Engine
}

/** Failures of the cases that end a process. */
async function lossesOf({ disk, next = (engine) => engine }: Loss): Promise<string[]> {
  const disks = new WeakMap<Engine, SimFs>()
  let seed = 0
  const open = async (fs: SimFs, change: (engine: Engine) => Engine): Promise<Engine> => {
    const engine = change(await fileEngine({ clock: new ManualClock(), fs }))
    disks.set(engine, fs)
    return engine
  }
  const cases = logConformance('lossy', () => open(new SimFs(disk), (engine) => engine), {
    restart: (engine, end) => {
      const fs = disks.get(engine) as SimFs
      return open(end === 'power loss' ? fs.crash({ seed: seed++, share: 0 }) : fs.kill(), next)
    },
  })
  const failed: string[] = []
  for (const { title, run } of cases) {
    if (!/\((close|kill|power loss)\)$/.test(title)) continue
    await run().catch((error: unknown) => failed.push(`${title}: ${String(error)}`))
  }
  return failed
}

const onLogs =
  (change: (log: PartitionLog, spec: LogSpec) => Partial<PartitionLog>) =>
  (engine: Engine): Engine =>
    replaced(engine, {
      openLog: async (spec) => {
        const log = await engine.openLog(spec)
        return replaced(log, change(log, spec))
      },
    })

const LOSSES: Readonly<Record<string, Loss>> = {
  'a disk that is not synced': { disk: { missingSync: true } },
  'names of files that are not synced': { disk: { missingDirectorySync: true } },
  'a store that is forgotten': {
    next: (engine) =>
      replaced(engine, { meta: replaced(engine.meta, { get: () => undefined, scan: () => [] }) }),
  },
  'a start that is forgotten': { next: onLogs((log) => ({ marks: { ...log.marks, start: 0 } })) },
  'producers that are forgotten': { next: onLogs(() => ({ producers: () => [] })) },
  'aborted transactions that are forgotten': {
    next: onLogs((log) => ({
      read: async (from, max, isolation) => ({ ...(await log.read(from, max, isolation)), aborted: [] }),
    })),
  },
  'a deletion that is forgotten': {
    next: (engine) => replaced(engine, { deleteLog: async () => {} }),
  },
}

describe('the conformance suite', () => {
  it('passes an engine that keeps the contract', async () => {
    expect(await failuresOf(newEngine)).toEqual([])
  })

  it.each(Object.entries(FAULTS))('finds %s', async (_, fault) => {
    expect(await failuresOf(() => withFault(fault))).not.toEqual([])
  })

  it('finds a store that scans in the order of insertion, and one that cannot delete', async () => {
    const unsorted = (meta: Meta): Partial<Meta> => ({ scan: (prefix) => [...meta.scan(prefix)].reverse() })
    const undying = (meta: Meta): Partial<Meta> => ({
      put: (changes) => meta.put(changes.filter(([, value]) => value !== null)),
    })
    expect(await failuresOf(() => withMeta(unsorted))).not.toEqual([])
    expect(await failuresOf(() => withMeta(undying))).not.toEqual([])
  })

  it('wants to see an engine again that says it lasts', async () => {
    const cases = logConformance('e', () => fileEngine({ clock: new ManualClock(), fs: new SimFs() }))
    const honest = cases.find(({ title }) => title.includes('says it lasts'))
    await expect(honest?.run()).rejects.toThrow('`restart`')
  })

  it.each(Object.entries(LOSSES))('finds %s', async (_, loss) => {
    expect(await lossesOf(loss)).not.toEqual([])
  })

  it('passes an engine that loses nothing', async () => {
    expect(await lossesOf({})).toEqual([])
  }, 60_000)

  it('finds a deleted log that lives on', async () => {
    const undead = (): Engine => replaced(newEngine(), { deleteLog: async () => {} })
    expect(await failuresOf(undead)).not.toEqual([])
  })

  it('says what it expected and what it found', async () => {
    const failures = await failuresOf(() => withFault(() => ({ tryAppendOne: () => LOG_CLOSED })))
    expect(failures.join('\n')).toContain('single records: expected [0,1], got [-2,-2]')
  })

  it('skips what an engine lacks, with the reason, and nothing else', () => {
    const all = logConformance('e', async () => newEngine())
    const some = logConformance('e', async () => newEngine(), { without: { transactions: 'for a reason' } })
    expect(all.filter(({ skip }) => skip !== undefined)).toEqual([])
    const skipped = some.filter(({ skip }) => skip !== undefined)
    expect(skipped.length).toBeGreaterThan(0)
    expect(skipped.length).toBeLessThan(some.length)
    expect(new Set(skipped.map(({ skip }) => skip))).toEqual(new Set(['for a reason']))
  })

  it('closes the engine it made, also when a case fails', async () => {
    let closed = 0
    const makeEngine = async (): Promise<Engine> => {
      const engine = withFault(() => ({ tryAppendOne: () => 99 }))
      return replaced(engine, {
        close: () => {
          closed++
          return engine.close()
        },
      })
    }
    const cases = logConformance('e', makeEngine)
    for (const { run } of cases) await run().catch((error: unknown) => expect(error).toBeInstanceOf(Error))
    expect(closed).toBeGreaterThanOrEqual(cases.length)
  })
})
