/** What package.json says of the package, for the scripts and tests that must not repeat it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root: string = join(import.meta.dirname, '..')

interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
}

export const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** The importable subpaths: `odradek/memory` is `{ specifier: 'odradek/memory', name: 'memory', … }`. */
export const entryPoints: readonly { specifier: string; name: string; types: string }[] = Object.entries(
  manifest.exports,
).flatMap(([subpath, target]) => {
  if (typeof target === 'string') return []
  const name = subpath === '.' ? 'index' : subpath.slice(2)
  return [{ specifier: join(manifest.name, subpath), name, types: target.types }]
})
