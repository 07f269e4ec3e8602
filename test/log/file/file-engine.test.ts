import { describe, it } from 'vitest'
import { fileEngine } from '../../../src/log/file/file-engine.ts'
import { logConformance } from '../../../src/testing/log-conformance.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'

describe('the file engine', () => {
  const cases = logConformance('files', () => fileEngine({ clock: new ManualClock(), fs: new SimFs() }))
  for (const { title, skip, run } of cases) it.skipIf(skip)(title, run)
})
