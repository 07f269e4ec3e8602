/**
 * An engine of a new, empty directory, at hand before it is open: a `World` is made within a call. What is asked for
 * meanwhile waits, and there is nothing to be remembered yet.
 */
import type { Engine, RetentionLimits } from '../../src/log/contract.ts'
import { DEFAULT_FILE_RETENTION_BYTES } from '../../src/model/limits.ts'

const RETENTION: RetentionLimits = {
  records: Number.POSITIVE_INFINITY,
  bytes: DEFAULT_FILE_RETENTION_BYTES,
  ageMs: Number.POSITIVE_INFINITY,
}

export function lateEngine(opening: Promise<Engine>): Engine {
  let open: Engine | undefined
  const opened = opening.then((engine) => {
    open = engine
    return engine
  })
  return {
    scheme: 'file',
    durable: true,
    encodes: true,
    compacts: false,
    retention: RETENTION,
    meta: {
      get: (key) => open?.meta.get(key),
      scan: (prefix) => open?.meta.scan(prefix) ?? [],
      put: (changes) => open?.meta.put(changes) ?? opened.then((engine) => engine.meta.put(changes)),
    },
    refusal: (logs, sizeBytes) => open?.refusal(logs, sizeBytes),
    openLog: (spec) => opened.then((engine) => engine.openLog(spec)),
    deleteLog: (topicId, partition) =>
      open?.deleteLog(topicId, partition) ?? opened.then((engine) => engine.deleteLog(topicId, partition)),
    close: () => opened.then((engine) => engine.close()),
  }
}
