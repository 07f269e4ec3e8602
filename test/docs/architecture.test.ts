/** The file map of ARCHITECTURE.md names every file of the folders it describes, and no other. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root, rowsOf } from './markdown.ts'

const filesIn = (folder: string): string[] =>
  readdirSync(join(root, 'src', folder))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => name.slice(0, -'.ts'.length))
    .sort()

/** Names in backticks in the rows whose first cell begins with the folder. */
function mapped(folder: string): string[] {
  const cells = rowsOf('ARCHITECTURE.md').filter(([first]) => first?.startsWith(`\`${folder}/\``))
  return cells
    .flatMap(([, files]) => [...(files ?? '').matchAll(/`([a-z-]+)`/g)].map(([, name]) => name as string))
    .sort()
}

describe('the file map of ARCHITECTURE.md', () => {
  it.each(['model', 'core', 'coordinator', 'log/file'])('names the files of src/%s', (folder) => {
    expect(mapped(folder)).toEqual(filesIn(folder))
  })
})
