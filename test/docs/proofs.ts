/** Tables of the documentation whose second column names a test, by its file and its title. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, rowsOf } from './markdown.ts'

export interface Proof {
  /** What is claimed. */
  readonly claim: string
  readonly file: string
  readonly title: string
}

export function proofsOf(page: string): Proof[] {
  return rowsOf(page).map(([claim = '', proof = '']) => {
    const [, file = '', title = ''] = /^`([\w/.-]+)`: (.+)$/.exec(proof) ?? []
    return { claim, file, title: title.replaceAll('\\|', '|') }
  })
}

/** Why there is no such test; undefined where there is. */
export function lost({ file, title }: Proof): string | undefined {
  const path = join(root, 'test', file)
  if (file === '') return 'no test is named'
  if (!existsSync(path)) return `there is no file ${file}`
  const text = readFileSync(path, 'utf8')
  return spellings(title).some((spelling) => text.includes(spelling))
    ? undefined
    : `"${title}" is not in ${file}`
}

/** The text of a title as it stands in the source, in whatever quotes. */
function spellings(title: string): string[] {
  return [`'${title.replaceAll("'", "\\'")}'`, `"${title.replaceAll('"', '\\"')}"`, `\`${title}\``]
}
