/**
 * The package as a user gets it: packed, and installed without a registry into an empty project. Needs the
 * build (`npm run test:package` makes it); that it installs offline shows that it depends on nothing.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../../scripts/package.ts'

export interface Installed {
  /** The user's project, with the package in its node_modules and test/package/user beside it. */
  readonly folder: string
  /** Paths inside the tarball. */
  readonly files: readonly string[]
  remove(): void
}

export function installPackage(): Installed {
  const folder = mkdtempSync(join(tmpdir(), 'odradek-package-'))
  const tarballs = join(folder, 'tarballs')
  mkdirSync(tarballs)
  const packed = npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', tarballs)
  const [{ filename, files }] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }]
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  npm(folder, 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', join(tarballs, filename))
  cpSync(join(import.meta.dirname, 'user'), folder, { recursive: true })
  return {
    folder,
    files: files.map(({ path }) => path),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
