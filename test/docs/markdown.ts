/**
 * The documentation as data: its pages, the fenced blocks, headings and links in them. Markdown is read line by
 * line, as far as our own pages need it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'

export const root: string = join(import.meta.dirname, '..', '..')

export interface Block {
  /** Path of the page below the root, with `/`. */
  readonly page: string
  /** Line of the first line of code, from 1. */
  readonly line: number
  /** Words after the fence: the language first. */
  readonly info: readonly string[]
  readonly code: string
}

/** Every page: those at the root, and all below docs/. */
export const pages: readonly string[] = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.split(sep).join('/')}`),
].sort()

function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

export function blocksOf(page: string): Block[] {
  const blocks: Block[] = []
  let open: { line: number; info: readonly string[]; code: string[] } | undefined
  for (const [index, line] of textOf(page).split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line)
    if (fence === null) open?.code.push(line)
    else if (open === undefined) {
      open = { line: index + 2, info: (fence[1] as string).trim().split(/\s+/), code: [] }
    } else {
      blocks.push({ page, line: open.line, info: open.info, code: `${open.code.join('\n')}\n` })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${page}:${open.line - 1}: a block that never ends`)
  return blocks
}

/** The page without its fenced blocks, line numbers kept. */
export function proseOf(page: string): string {
  return textOf(page).replace(/^```[^\n]*\n[\s\S]*?^```$/gm, (block) => block.replace(/[^\n]/g, ''))
}

/** What a link to a heading of the page ends in, as GitHub makes it. */
export function anchorsOf(page: string): Set<string> {
  const headings = [...proseOf(page).matchAll(/^#{1,6} +(.+)$/gm)].map(([, text]) => text as string)
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

/** Cells of every row of the page's tables, the rows of headings and rules left out. */
export function rowsOf(page: string): string[][] {
  const lines = proseOf(page).split('\n')
  return lines.flatMap((line, i) => {
    const isRow = line.startsWith('|') && !/^\|[\s:|-]+\|$/.test(line)
    const isHead = /^\|[\s:|-]+\|$/.test(lines[i + 1] ?? '')
    if (!isRow || isHead) return []
    return [
      line
        .slice(1, line.lastIndexOf('|'))
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    ]
  })
}
