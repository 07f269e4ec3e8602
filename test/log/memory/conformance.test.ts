import { describe, it } from 'vitest'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import { logConformance } from '../../../src/testing/log-conformance.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

describe('the log contract', () => {
  const cases = logConformance('memory', async () => memoryEngine({ clock: new ManualClock() }))
  for (const { title, skip, run } of cases) it.skipIf(skip !== undefined)(title, run)
})
