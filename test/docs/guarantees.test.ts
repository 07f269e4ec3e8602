/** Every promise of docs/guarantees.md names a test that exists, by its file and its title. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root, rowsOf } from './markdown.ts'

const rows = rowsOf('docs/guarantees.md').map(([promise = '', proof = '']) => {
  const [, file = '', title = ''] = /^`([\w/.-]+)`: (.+)$/.exec(proof) ?? []
  return { promise, file, title: title.replaceAll('\\|', '|') }
})

/** The text of a title as it stands in the source, in whatever quotes. */
function spellings(title: string): string[] {
  return [`'${title.replaceAll("'", "\\'")}'`, `"${title.replaceAll('"', '\\"')}"`, `\`${title}\``]
}

describe('docs/guarantees.md', () => {
  it('promises a lot', () => {
    expect(rows.length).toBeGreaterThan(80)
  })

  it.each(rows)('"$promise" is proved by a test', ({ file, title }) => {
    const path = join(root, 'test', file)
    expect(file === '' ? 'no test named' : existsSync(path)).toBe(true)
    const text = readFileSync(path, 'utf8')
    expect(spellings(title).some((spelling) => text.includes(spelling))).toBe(true)
  })
})
