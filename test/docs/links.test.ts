/** Links within the documentation lead somewhere, and every page can be reached. */
import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { describe, expect, it } from 'vitest'
import { anchorsOf, pages, proseOf, root } from './markdown.ts'

interface Link {
  readonly place: string
  /** Path below the root, with `/`. */
  readonly target: string
  readonly anchor: string | undefined
}

function linksOf(page: string): Link[] {
  return proseOf(page)
    .split('\n')
    .flatMap((line, i) =>
      [...line.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, href]) => {
        if (/^[a-z]+:/.test(href as string)) return []
        const [path, anchor] = (href as string).split('#') as [string, string | undefined]
        const file = path === '' ? join(root, page) : resolve(root, dirname(page), path)
        return [{ place: `${page}:${i + 1}`, target: relative(root, file).split(sep).join('/'), anchor }]
      }),
    )
}

const links = pages.flatMap(linksOf)

describe('links in the documentation', () => {
  it('are found', () => {
    expect(links.length).toBeGreaterThan(50)
  })

  it('lead to files that exist', () => {
    const lost = links.filter(({ target }) => !existsSync(join(root, target)))
    expect(lost).toEqual([])
  })

  it('lead to headings that exist', () => {
    const lost = links.filter(({ target, anchor }) => {
      return anchor !== undefined && !(pages.includes(target) && anchorsOf(target).has(anchor))
    })
    expect(lost).toEqual([])
  })

  it('reach every page from the README, decisions by their folder', () => {
    const reached = new Set(['README.md'])
    for (const page of reached)
      for (const { target } of linksOf(page)) if (pages.includes(target)) reached.add(target)
    const inFolder = (page: string): boolean => page.startsWith('docs/decisions/')
    expect(pages.filter((page) => !reached.has(page) && !inFolder(page))).toEqual([])
  })
})

describe('README.md', () => {
  it('has at most 200 lines', () => {
    expect(proseOf('README.md').split('\n').length).toBeLessThanOrEqual(200)
  })
})
