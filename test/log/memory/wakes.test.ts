/** `start` of a full log slides by itself; whoever listens hears of it all the same. */
import { describe, expect, it } from 'vitest'
import { MemoryLog } from '../../../src/log/memory/memory-log.ts'
import { keeping, specOf, T0 } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

/** Ten records in segments of four, and every start that was heard of. */
function tenRecords(): { log: MemoryLog; heard: number[] } {
  const log = new MemoryLog(specOf(keeping({ records: 64 })), { clock: new ManualClock({ startMs: T0 }) })
  for (let i = 0; i < 10; i++) log.tryAppendOne(i, null, null, T0, 100)
  const heard: number[] = []
  log.onAdvance(() => heard.push(log.marks.start))
  return { log, heard }
}

describe('a wake follows', () => {
  it.each([9, 8, 7, 6, 5, 1])('retention lowered to %i', (records) => {
    const { log, heard } = tenRecords()
    log.configure(keeping({ records }))
    expect(log.marks.start).toBe(10 - records)
    expect(heard.at(-1)).toBe(10 - records)
  })

  it('a gate that opens on a log that holds too much', () => {
    const { log, heard } = tenRecords()
    log.gate(0)
    log.configure(keeping({ records: 2 }))
    expect(heard).toEqual([])
    for (const gate of [1, 3, 4, 7, Number.POSITIVE_INFINITY]) {
      log.gate(gate)
      expect(log.marks.start).toBe(Math.min(gate, 8))
      expect(heard.at(-1)).toBe(Math.min(gate, 8))
    }
  })
})
