/** Engines for tests: the memory engine, with a hand on its logs. */
import type { Engine, LogSpec, PartitionLog } from '../../src/log/contract.ts'

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
