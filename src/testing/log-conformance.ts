/**
 * What every engine must do, as cases that need no test runner: each makes an engine of its own, throws where
 * a clause of src/log/contract.ts does not hold, and closes it. What an engine cannot do it names with a
 * reason, and the cases that need it are listed as skipped, so that a deviation is never silent.
 *
 * ```ts
 * for (const { title, skip, run } of logConformance('mine', makeEngine)) it.skipIf(skip)(title, run)
 * ```
 */
import type { Engine } from '../log/contract.ts'
import { APPENDING } from './conformance/appending.ts'
import { plainly } from './conformance/encoding.ts'
import type { Capability, LogCase, ProcessEnd } from './conformance/kit.ts'
import { HONEST, LASTING } from './conformance/lasting.ts'
import { READING } from './conformance/reading.ts'
import { ROOM } from './conformance/room.ts'
import { STORE } from './conformance/store.ts'
import { TRANSACTIONS } from './conformance/transactions.ts'

export type { Capability, ProcessEnd } from './conformance/kit.ts'

export interface LogConformanceOptions {
  /** Why the engine lacks a capability. */
  readonly without?: { readonly [capability in Capability]?: string }
  /**
   * For an engine that is durable, and only for such a one: ends the process that has `engine` (after `close` was
   * called, where that is how), and answers the engine that the next process opens on what is left.
   */
  readonly restart?: (engine: Engine, end: ProcessEnd) => Promise<Engine>
}

export interface ConformanceCase {
  /** The engine and the behaviour. */
  readonly title: string
  /** The engine's reason, where it lacks what the case needs. */
  readonly skip: string | undefined
  /** @throws Error that says what was expected and what was found. */
  run(): Promise<void>
}

const CASES: readonly LogCase[] = [...APPENDING, ...ROOM, ...READING, ...TRANSACTIONS, ...STORE]

/** The cases for one engine. `makeEngine` answers a new, empty engine each time. */
export function logConformance(
  name: string,
  makeEngine: () => Promise<Engine>,
  options: LogConformanceOptions = {},
): readonly ConformanceCase[] {
  const cases = [...CASES, ...(options.restart === undefined ? [HONEST] : LASTING)]
  return cases.map(({ title, needs, run }) => ({
    title: `${name}: ${title}`,
    skip: needs.map((capability) => options.without?.[capability]).find((reason) => reason !== undefined),
    async run() {
      const first = await makeEngine()
      let engine: Engine | undefined = first
      const restart = async (end: ProcessEnd): Promise<Engine> => {
        const before = engine as Engine
        // Its process ends, so there is nothing to close, even if there is no next one.
        engine = undefined
        if (end === 'close') await before.close()
        engine = (await options.restart?.(before, end)) as Engine
        return plainly(engine)
      }
      try {
        await run(plainly(first), restart)
      } finally {
        await engine?.close()
      }
    },
  }))
}
