/** The engine that the suite runs on: tests that do not choose one run on every engine there is (vitest.config.ts). */
import type { Engine } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { Clock } from '../../src/model/clock.ts'
import { byteEngine } from './byte-engine.ts'
import { byteDisk, type Disk, fileDisk, plainDisk } from './disks.ts'
import { lateEngine } from './late-engine.ts'

interface Suite {
  /** An engine of its own, empty. */
  readonly engine: (clock: Clock) => Engine
  /** What outlives a process. */
  readonly disk: () => Disk
}

const SUITES: { readonly [name: string]: Suite } = {
  memory: { engine: (clock) => memoryEngine({ clock }), disk: plainDisk },
  bytes: { engine: (clock) => byteEngine({ clock }), disk: byteDisk },
  file: { engine: (clock) => lateEngine(fileDisk().open(clock)), disk: fileDisk },
}

/** What `ODRADEK_ENGINE` names: the engine that tests run on where they do not choose one. */
export const SUITE_ENGINE: string = process.env.ODRADEK_ENGINE ?? 'memory'

function suite(): Suite {
  const found = SUITES[SUITE_ENGINE]
  if (found !== undefined) return found
  throw new Error(`no engine "${SUITE_ENGINE}"; there are ${Object.keys(SUITES).join(', ')}`)
}

export function engineOfSuite(clock: Clock): Engine {
  return suite().engine(clock)
}

export function diskOfSuite(): Disk {
  return suite().disk()
}
