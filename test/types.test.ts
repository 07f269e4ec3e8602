/** Compiles test/types: the public types hold what they promise, and the canary beside them does not. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const folder = join(import.meta.dirname, 'types')
const tsc = join(import.meta.dirname, '..', 'node_modules', 'typescript', 'bin', 'tsc')

function compile(...options: string[]): string[] {
  const run = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false', ...options], {
    cwd: folder,
    encoding: 'utf8',
  })
  expect(run.error).toBeUndefined()
  return run.stdout.trim().split('\n')
}

/** `file:line` of every complaint; a complaint's further lines are indented. */
const complaints = compile().flatMap((line) => /^([^\s(]+)\((\d+),/.exec(line)?.slice(1).join(':') ?? [])

describe('the public types', () => {
  it('are those that the assertions in test/types expect', () => {
    expect(complaints.filter((place) => !place.startsWith('canary.types.ts:'))).toEqual([])
  })

  it('are checked by a run that sees every wrong line of the canary, and no other', () => {
    const lines = readFileSync(join(folder, 'canary.types.ts'), 'utf8').split('\n')
    const wrong = lines.flatMap((line, i) => (line.endsWith('// wrong') ? [`canary.types.ts:${i + 1}`] : []))
    expect(wrong).not.toEqual([])
    expect(complaints.filter((place) => place.startsWith('canary.types.ts:'))).toEqual(wrong)
  })

  it('are checked by a run that includes the assertions', () => {
    expect(compile('--listFilesOnly')).toContain(join(folder, 'api.types.ts'))
  })
})
