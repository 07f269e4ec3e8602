/**
 * An engine that encodes, as cases see it: they go on writing plain values, which reach its logs as the core would
 * hand them over, with the size that they have then. What is read comes decoded already.
 */
import { encoded } from '../../core/encode.ts'
import type { Engine, LogSpec, PartitionLog } from '../../log/contract.ts'
import { type Batch, Columns } from '../../model/batch.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'

/** The engine itself, if it takes plain values. */
export function plainly(engine: Engine): Engine {
  if (!engine.encodes) return engine
  return changed(engine, {
    openLog: async (spec) => encodingLog(await engine.openLog(spec), spec),
    // It knows its own logs only.
    refusal: (logs, sizeBytes) => engine.refusal(logs.map(ownLog), sizeBytes),
  })
}

/** The logs of the engine, by those that cases have. */
const own = new WeakMap<PartitionLog, PartitionLog>()

function ownLog(log: PartitionLog): PartitionLog {
  return own.get(log) ?? log
}

function encodingLog(log: PartitionLog, { topic, codec }: LogSpec): PartitionLog {
  const form = (value: unknown, key: Key | null, headers: RecordHeaders | null) =>
    encoded(topic, codec, value, key, headers)

  const batchOf = (batch: Batch): Batch => {
    if (batch.columns === null) return batch
    const rows = batch.columns
    const columns = new Columns(0)
    let sizeBytes = 0
    for (let row = 0; row < rows.count; row++) {
      const made = form(rows.values[row], rows.keyAt(row), rows.headersAt(row))
      columns.push(made.value, rows.keyAt(row), made.headers, rows.timestampAt(row), made.sizeBytes)
      sizeBytes += made.sizeBytes
    }
    return { ...batch, columns, sizeBytes }
  }

  const encoding = changed(log, {
    tryAppendOne(value, key, headers, timestamp, _sizeBytes, mode) {
      const made = form(value, key, headers)
      return log.tryAppendOne(made.value, key, made.headers, timestamp, made.sizeBytes, mode)
    },
    tryAppend: (batch, mode) => log.tryAppend(batchOf(batch), mode),
    append: (batch, signal) => log.append(batchOf(batch), signal),
  })
  own.set(encoding, log)
  return encoding
}

/** `target`, with some of its members replaced; the others are its own. */
function changed<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get(_, name) {
      const replaced: unknown = Reflect.get(members, name)
      if (replaced !== undefined) return replaced
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
