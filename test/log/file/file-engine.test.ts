import { describe, it } from 'vitest'
import type { Cleanup, Engine } from '../../../src/log/contract.ts'
import { type FileEngineOptions, fileEngine } from '../../../src/log/file/file-engine.ts'
import { logConformance } from '../../../src/testing/log-conformance.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { withLogs } from '../../support/engines.ts'
import { SimFs } from '../../support/sim-fs.ts'

const KiB = 1024

const WITHOUT = {
  'immediate durability': 'what a crash may take back is not evicted',
  'exact bytes':
    'bytes are those of whole batches on the disk, and records between two known places count as equally large',
}

/** Their records have keys, of which compaction leaves the newest only. */
const KEYED = /many records in many logs/

/** Engines, each on a disk of its own, and the way back to it. */
function conformanceOf(name: string, options: FileEngineOptions, cleanup: Cleanup = 'delete'): void {
  const disks = new WeakMap<Engine, SimFs>()
  let seed = 0
  const open = async (fs: SimFs): Promise<Engine> => {
    const files = await fileEngine({ clock: new ManualClock(), fs }, options)
    const engine = withLogs(files, (spec) => files.openLog({ ...spec, cleanup }))
    disks.set(engine, fs)
    return engine
  }
  const cases = logConformance(name, () => open(new SimFs()), {
    without: WITHOUT,
    restart: (engine, end) => {
      const disk = disks.get(engine) as SimFs
      return open(end === 'power loss' ? disk.crash({ seed: seed++ }) : disk.kill())
    },
  })
  describe(`the file engine, ${name}`, () => {
    for (const { title, skip, run } of cases) {
      it.skipIf(skip !== undefined || (cleanup === 'compact' && KEYED.test(title)))(title, run)
    }
  })
}

conformanceOf('as it is', {})
const SMALL = { journalBytes: 256 * KiB, segmentBytes: 2 * KiB, cacheBytes: 1 }
conformanceOf('with small files and next to no cache', SMALL)
// Most records of the suite have no key, and so nothing of them goes; but all that is done to make others go is done.
conformanceOf('compacted', SMALL, 'compact')
