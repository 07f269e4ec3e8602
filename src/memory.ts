/**
 * `odradek/memory`: the broker on the memory engine and nothing else. Synchronous to open, reaches no
 * `node:*`, runs in a browser.
 */
import { Broker, type BrokerOptions, type BrokerPlugs, type TopicMap } from './broker.ts'
import { memoryEngine } from './log/memory/memory-engine.ts'
import { SystemClock } from './model/clock.ts'

export type { Broker, BrokerOptions, BrokerPlugs, TopicMap } from './broker.ts'
export type { Observer } from './core/events.ts'

/** Opens a broker in memory, at once. `plugs` is what the surroundings have to offer, as diagnostics. */
export function createBroker<Map extends object = TopicMap>(
  options: BrokerOptions = {},
  plugs: BrokerPlugs = {},
): Broker<Map> {
  const clock = options.clock ?? new SystemClock()
  return new Broker<Map>(memoryEngine({ clock }), { ...options, clock }, plugs)
}
