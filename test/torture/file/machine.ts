/** A broker on a simulated disk, put together as src/node/open-files.ts does it with a real one, and time to drive it. */
import { Broker } from '../../../src/broker.ts'
import { type FileEngineOptions, fileEngine } from '../../../src/log/file/file-engine.ts'
import type { FileSystem } from '../../../src/log/file/fs.ts'
import type { Logger } from '../../../src/model/views.ts'
import type { ManualClock } from '../../../src/testing/manual-clock.ts'

export interface Opened {
  readonly broker: Broker
  /** What the engine had to say about what it found. */
  readonly findings: readonly string[]
}

/** `complain` hears of errors that nobody waits for. */
export async function openOn(
  fs: FileSystem,
  clock: ManualClock,
  files: FileEngineOptions,
  complain: (error: unknown, what: string) => void,
): Promise<Opened> {
  const findings: string[] = []
  const engine = await fileEngine(
    {
      clock,
      fs,
      report: (error, what) => {
        if (error === undefined) findings.push(what)
        else complain(error, what)
      },
    },
    files,
  )
  const quiet = (): void => {}
  const error: Logger['error'] = (details, message) => {
    complain((details as { error?: unknown }).error, message)
  }
  const logger = { debug: quiet, info: quiet, warn: quiet, error }
  const broker = new Broker(engine, { clock, random: () => 0.5, logger, commitFlushMs: 3 })
  await broker.restore()
  return { broker, findings }
}

/** Lets time go by until the work is done, or something makes it stop. Answers whether it is done. */
export async function drive(
  clock: ManualClock,
  work: Promise<unknown>,
  isOver: () => boolean,
  patienceMs = 120_000,
): Promise<boolean> {
  let settled = false
  const mark = (): void => {
    settled = true
  }
  work.then(mark, mark)
  await clock.settle()
  for (let ms = 0; !settled && !isOver() && ms < patienceMs; ms++) await clock.advance(1)
  return settled
}
