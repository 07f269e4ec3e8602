/** What is published: no more than is needed, nothing to install beside it, every entry point importable. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { entryPoints, manifest, root } from '../../scripts/package.ts'
import type { Installed } from './installed.ts'
import { installPackage } from './installed.ts'

let installed: Installed
beforeAll(() => {
  installed = installPackage()
})
afterAll(() => installed.remove())

describe('the published package', () => {
  it('has no dependencies', () => {
    expect(Object.keys(manifest.dependencies ?? {})).toEqual([])
    const beside = readdirSync(join(installed.folder, 'node_modules')).filter((name) => !name.startsWith('.'))
    expect(beside).toEqual([manifest.name])
  })

  it('holds the build, the licence and the front pages, and no source, test or tool', () => {
    const strays = installed.files.filter((path) => !/^dist\/.+\.(?:js|js\.map|d\.ts)$/.test(path))
    expect(strays.sort()).toEqual(['ARCHITECTURE.md', 'LICENSE', 'README.md', 'package.json'])
  })

  it.each(entryPoints)('imports $specifier in plain Node', ({ specifier }) => {
    const names = execFileSync(
      process.execPath,
      ['-e', `import('${specifier}').then((it) => console.log(Object.keys(it).join(' ')))`],
      { cwd: installed.folder, encoding: 'utf8' },
    )
    expect(names.trim()).not.toBe('')
  })

  it('brings the command odradek', () => {
    const bin = join(installed.folder, 'node_modules', '.bin', 'odradek')
    expect(execFileSync(bin, ['--version'], { encoding: 'utf8' }).trim()).toBe(manifest.version)
    const refused = spawnSync(bin, ['verify', installed.folder], { encoding: 'utf8' })
    expect([refused.status, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain('is no data directory of Odradek')
  })

  it.each(['NodeNext', 'Bundler'])('compiles strictly in a user’s project, resolved by %s', (resolution) => {
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const module = resolution === 'Bundler' ? 'ESNext' : resolution
    const run = spawnSync(
      process.execPath,
      [tsc, '-p', installed.folder, '--module', module, '--moduleResolution', resolution],
      { encoding: 'utf8' },
    )
    expect(run.stdout).toBe('')
    expect(run.status).toBe(0)
  })
})
