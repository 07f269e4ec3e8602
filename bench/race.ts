/**
 * Lets contenders move the same records in turn, A B C A B C …, in one process, and says how long each
 * took per record. Every contender keeps its broker, emitter or queue for the whole process, so what is
 * timed is the steady state: logs are full and evict, code is optimised. The young heap is
 * collected before each turn, outside the clock, so that nobody pays for another's garbage. What was moved is checked after
 * each turn, also outside the clock.
 */
import type { Plan, Samples } from './scenario.ts'
import type { Expectation, Tally } from './tally.ts'

/** A contender at work. `run` starts `count` records on their way; the tallies know when all arrived. */
export interface Session {
  readonly tallies: readonly Tally[]
  run(count: number): void | Promise<void>
  close?(): void | Promise<void>
}

export interface Contender {
  readonly name: string
  open(): Session | Promise<Session>
}

export interface Race {
  readonly contenders: readonly Contender[]
  readonly expectation: Expectation
  /** Counts are multiples of it. Default 1. */
  readonly unit?: number
  /** Deliveries one tally sees of `count` records. Default: each once. */
  readonly deliveries?: (count: number) => number
}

interface Runner {
  readonly name: string
  readonly session: Session
  count: number
}

/**
 * The young generation only: a whole collection at rest throws away the shapes of objects that have no instance
 * just then, and with them the optimised code, which a collection in the middle of work does not.
 */
function collect(): void {
  globalThis.gc?.({ type: 'minor' })
}

/** A turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

function wallMs(): number {
  return performance.now()
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Milliseconds by the clock that the plan asks for. */
export function clockOf({ clock }: Plan): () => number {
  return clock === 'cpu' ? cpuMs : wallMs
}

/** The `sample` of a scenario whose contenders race. */
export function race(config: Race): (plan: Plan) => Promise<Samples> {
  return async (plan) => {
    const runners: Runner[] = []
    for (const { name, open } of config.contenders) {
      const runner = { name, session: await open(), count: config.unit ?? 1 }
      await calibrate(runner, config, plan)
      runners.push(runner)
    }
    const samples: { [contender: string]: number[] } = {}
    for (const { name } of runners) samples[name] = []
    for (const runner of runners) await timed(runner, config, plan)
    for (let round = 0; round < plan.rounds; round++) {
      for (const runner of runners) {
        samples[runner.name]?.push(((await timed(runner, config, plan)) * 1e6) / runner.count)
      }
    }
    for (const { session } of runners) await session.close?.()
    return samples
  }
}

/** Grows the count until one turn takes about `roundMs`, which warms the code up as well. */
async function calibrate(runner: Runner, config: Race, plan: Plan): Promise<void> {
  const unit = config.unit ?? 1
  for (;;) {
    const elapsedMs = await timed(runner, config, plan)
    const factor = Math.min(plan.roundMs / Math.max(elapsedMs, 0.01), 8)
    runner.count = Math.max(Math.round((runner.count * factor) / unit), 1) * unit
    if (factor < 1.5) return
  }
}

/** Milliseconds from the first publish to the last delivery. */
async function timed({ name, session, count }: Runner, config: Race, plan: Plan): Promise<number> {
  const deliveries = config.deliveries?.(count) ?? count
  for (const tally of session.tallies) tally.start(deliveries)
  collect()
  await turn()
  const now = clockOf(plan)
  const from = now()
  await session.run(count)
  for (const tally of session.tallies) await tally.done
  const elapsedMs = now() - from
  await turn()
  session.tallies.forEach((tally, index) => {
    const hash = config.expectation(deliveries, index)
    if (tally.count !== deliveries || tally.hash !== hash) {
      throw new Error(
        `${name}, tally ${index}: ${tally.count} deliveries with checksum ${tally.hash}, ` +
          `expected ${deliveries} with ${hash}`,
      )
    }
  })
  return elapsedMs
}
