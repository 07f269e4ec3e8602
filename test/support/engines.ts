/** Engines for tests: the one that the suite runs on, and any with a hand on its logs. */
import type { Engine, LogSpec, PartitionLog } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { Clock } from '../../src/model/clock.ts'
import { byteEngine } from './byte-engine.ts'

const MAKERS: { readonly [name: string]: (clock: Clock) => Engine } = {
  memory: (clock) => memoryEngine({ clock }),
  bytes: (clock) => byteEngine({ clock }),
}

/** The engine that `ODRADEK_ENGINE` names, or the memory engine: empty, its own. */
export function engineOfSuite(clock: Clock): Engine {
  const name = process.env.ODRADEK_ENGINE ?? 'memory'
  const make = MAKERS[name]
  if (make === undefined) throw new Error(`no engine "${name}"; there are ${Object.keys(MAKERS).join(', ')}`)
  return make(clock)
}

/** `engine`, whose logs are opened by `openLog` instead. */
export function withLogs(engine: Engine, openLog: (spec: LogSpec) => Promise<PartitionLog>): Engine {
  return {
    scheme: engine.scheme,
    meta: engine.meta,
    durable: engine.durable,
    encodes: engine.encodes,
    compacts: engine.compacts,
    retention: engine.retention,
    refusal: (logs, sizeBytes) => engine.refusal(logs, sizeBytes),
    openLog,
    deleteLog: (topicId, partition) => engine.deleteLog(topicId, partition),
    close: () => engine.close(),
  }
}

/** `log`, with some of its properties replaced. */
export function changedLog(log: PartitionLog, changes: Partial<PartitionLog>): PartitionLog {
  return new Proxy(log, {
    get(target, name) {
      const changed: unknown = Reflect.get(changes, name)
      if (changed !== undefined) return changed
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
