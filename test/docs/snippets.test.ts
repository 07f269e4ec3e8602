/**
 * Every TypeScript block of the documentation compiles against the source, and those marked `run` are run: the
 * `text` block that follows one, if there is one, is what it prints.
 *
 *   ```ts          compiled, with the names of ambient.d.ts at hand
 *   ```ts run      compiled and run, by itself
 *   ```text        right behind it: what it prints
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Block, blocksOf, pages, root } from './markdown.ts'

const bin = (path: string): string => join(root, 'node_modules', ...path.split('/'))
const here = import.meta.dirname

interface Snippet {
  readonly place: string
  readonly file: string
  readonly block: Block
  /** What it prints, where the page says so. */
  readonly output: string | undefined
}

function snippetsOf(page: string): Snippet[] {
  const blocks = blocksOf(page)
  return blocks.flatMap((block, i) => {
    if (block.info[0] !== 'ts') return []
    const next = blocks[i + 1]
    return [
      {
        block,
        place: `${page}:${block.line}`,
        file: `${page.replaceAll('/', '.')}.${block.line}.ts`,
        output: next?.info[0] === 'text' && isRunnable(block) ? next.code : undefined,
      },
    ]
  })
}

function isRunnable(block: Block): boolean {
  return block.info.includes('run')
}

const snippets = pages.flatMap(snippetsOf)
const runnable = snippets.filter(({ block }) => isRunnable(block))
let folder = ''
let complaints: string[] = []
let outcomes = new Map<string, { readonly output: string; readonly error: string | null }>()

beforeAll(() => {
  mkdirSync(join(root, '.cache'), { recursive: true })
  folder = mkdtempSync(join(root, '.cache', 'snippets-'))
  for (const { file, block } of snippets) {
    // Blank lines in front: what the compiler says of line 40 is line 40 of the page.
    writeFileSync(join(folder, file), `${'\n'.repeat(block.line - 1)}${block.code}export {}\n`)
  }
  const config = {
    extends: join(here, 'tsconfig.json'),
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    include: ['*.ts', join(here, 'ambient.d.ts')],
    exclude: [],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = [bin('typescript/bin/tsc'), '-p', folder, '--noEmit', '--pretty', 'false']
  const compiled = spawnSync(process.execPath, tsc, { cwd: folder, encoding: 'utf8' })
  complaints = compiled.stdout.split('\n').filter((line) => line !== '')
  const tsx = [bin('tsx/dist/cli.mjs'), '--tsconfig', join(folder, 'tsconfig.json')]
  const files = runnable.map(({ file }) => join(folder, file))
  const run = spawnSync(process.execPath, [...tsx, join(here, 'run-snippets.ts'), ...files], {
    cwd: root,
    encoding: 'utf8',
    timeout: 60_000,
  })
  const lines = run.stdout.split('\n').filter((line) => line !== '')
  outcomes = new Map(
    lines.map((line) => {
      const { file, output, error } = JSON.parse(line) as {
        file: string
        output: string
        error: string | null
      }
      return [file, { output, error }]
    }),
  )
}, 120_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the code in the documentation', () => {
  it('is there', () => {
    expect(snippets.length).toBeGreaterThan(0)
    expect(runnable.length).toBeGreaterThan(0)
  })

  it('is runnable right at the start of the README', () => {
    const first = snippets.find(({ block }) => block.page === 'README.md')
    expect(first?.block.line).toBeLessThanOrEqual(15)
    expect(first?.block.info).toContain('run')
  })

  it('prints only where it runs', () => {
    const misplaced = pages.flatMap((page) => {
      const blocks = blocksOf(page)
      return blocks.filter(({ info }, i) => {
        const before = blocks[i - 1]
        return info[0] === 'text' && before?.info[0] === 'ts' && !isRunnable(before)
      })
    })
    expect(misplaced.map(({ page, line }) => `${page}:${line}`)).toEqual([])
  })

  it.each(snippets)('$place compiles', ({ file }) => {
    expect(complaints.filter((line) => line.startsWith(`${file}(`))).toEqual([])
  })

  it('compiles without a complaint about anything else', () => {
    const files = snippets.map(({ file }) => file)
    expect(
      complaints.filter((line) => !files.some((file) => line.startsWith(`${file}(`)) && /^\S/.test(line)),
    ).toEqual([])
  })

  it.each(runnable)('$place runs, and prints what the page says', ({ file, output }) => {
    const outcome = outcomes.get(join(folder, file))
    expect(outcome?.error).toBeNull()
    if (output !== undefined) expect(outcome?.output).toBe(output)
  })
})
