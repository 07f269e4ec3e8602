/** `odradek/memory` in a browser: nothing of Node in the bundle, and the same behaviour in a real page. */
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { BuildResult } from 'esbuild'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Installed } from './installed.ts'
import { installPackage } from './installed.ts'

const candidates = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]
const executablePath = candidates.find((path) => path !== undefined && existsSync(path))
if (executablePath === undefined) {
  console.info('skipped: no Chromium at $CHROMIUM or in /usr/bin, so the page is bundled and not opened')
}

let installed: Installed
let bundle: BuildResult<{ write: false; metafile: true }>
beforeAll(async () => {
  installed = installPackage()
  bundle = await build({
    entryPoints: [join(installed.folder, 'page.ts')],
    bundle: true,
    platform: 'browser',
    format: 'esm',
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
})
afterAll(() => installed.remove())

describe('odradek/memory', () => {
  it('bundles for a browser without a module of Node', () => {
    const imports = Object.values(bundle.metafile.inputs).flatMap((input) => input.imports)
    expect(imports.filter(({ external }) => external === true)).toEqual([])
    expect(bundle.outputFiles[0]?.text).not.toMatch(/["']node:/)
  })

  it.skipIf(executablePath === undefined)('publishes, retries, replays and closes in a page', async () => {
    const script = bundle.outputFiles[0]?.text ?? ''
    const server = createServer((request, response) => {
      const page = request.url === '/page.js' ? script : '<script type="module" src="/page.js"></script>'
      response.setHeader('content-type', request.url === '/page.js' ? 'text/javascript' : 'text/html')
      response.end(page)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const browser = await chromium.launch({
      executablePath: executablePath as string,
      args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    })
    try {
      const page = await browser.newPage()
      const failure = new Promise<never>((_, reject) => page.on('pageerror', reject))
      await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
      await Promise.race([page.waitForFunction('globalThis.report', undefined, { timeout: 20_000 }), failure])
      expect(await page.evaluate('globalThis.report')).toEqual({
        delivered: ['a', 'b', 'c'],
        attempts: [1, 2, 1, 2],
        replayed: ['a', 'b', 'c'],
      })
    } finally {
      await browser.close()
      server.close()
    }
  })
})
