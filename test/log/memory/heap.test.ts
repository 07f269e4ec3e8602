import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'

it('a retained record costs at most 32 bytes beyond its value, with a key, a time and a size of its own', () => {
  const script = join(import.meta.dirname, 'heap.ts')
  const output = execFileSync(process.execPath, ['--expose-gc', '--import', 'tsx', script], {
    encoding: 'utf8',
  })
  const { plain, full } = JSON.parse(output) as { plain: number; full: number }
  console.info(`bytes for a retained record: ${plain.toFixed(1)} plain, ${full.toFixed(1)} with all fields`)
  expect(plain).toBeGreaterThan(7)
  expect(plain).toBeLessThanOrEqual(12)
  expect(full).toBeLessThanOrEqual(32)
})
