/**
 * `odradek/memory`: the broker on the memory engine and nothing else. Synchronous to open, reaches no
 * `node:*`, runs in a browser.
 */
import { Broker, type BrokerOptions, type BrokerPlugs, type TopicMap } from './broker.ts'
import type { BatchCodecs } from './log/contract.ts'
import { memoryEngine } from './log/memory/memory-engine.ts'
import { SystemClock } from './model/clock.ts'

export type { Broker, BrokerOptions, BrokerPlugs, TopicMap } from './broker.ts'
export type { Observer } from './core/events.ts'
export type { BatchCodecs } from './log/contract.ts'

/** What the surroundings have to offer: diagnostics, native CRC-32C, the codecs of compressed batches. */
export interface MemoryPlugs extends BrokerPlugs, BatchCodecs {}

/** Opens a broker in memory, at once. */
export function createBroker<Map extends object = TopicMap>(
  options: BrokerOptions = {},
  plugs: MemoryPlugs = {},
): Broker<Map> {
  const clock = options.clock ?? new SystemClock()
  return new Broker<Map>(memoryEngine({ ...plugs, clock }), { ...options, clock }, plugs)
}
