/** Engines and logs with a hand on them. */
import type { Engine, LogSpec, PartitionLog } from '../../src/log/contract.ts'

/** `engine`, whose logs are opened by `openLog` instead. */
export function withLogs(engine: Engine, openLog: (spec: LogSpec) => Promise<PartitionLog>): Engine {
  return changedEngine(engine, { openLog })
}

/** `engine`, with some of its properties replaced. */
export function changedEngine(engine: Engine, changes: Partial<Engine>): Engine {
  return changed(engine, changes)
}

/** `log`, with some of its properties replaced. */
export function changedLog(log: PartitionLog, changes: Partial<PartitionLog>): PartitionLog {
  return changed(log, changes)
}

function changed<T extends object>(object: T, changes: Partial<T>): T {
  return new Proxy(object, {
    get(target, name) {
      const change: unknown = Reflect.get(changes, name)
      if (change !== undefined) return change
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
