/** What is loaded before it is needed: nothing. Start and idle memory are what a process loads (docs/decisions/039-start-and-idle.md). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Installed } from './installed.ts'
import { installPackage } from './installed.ts'

/** Each costs a look-up, a read and a link; 199 when every module was one. */
const MAX_FILES = 16
/** Node's, each some hundreds of KiB. */
const DEAR = ['crypto', 'http', 'tls', 'worker_threads', 'zlib']
const TELL_BUILTINS = `data:text/javascript,process.on('exit',()=>process.stderr.write('\\n'+JSON.stringify(process.moduleLoadList)))`

let installed: Installed
beforeAll(() => {
  installed = installPackage()
})
afterAll(() => installed.remove())

interface Loaded {
  /** Paths in the user's node_modules. */
  readonly files: readonly string[]
  /** Node's modules, of those that are dear. */
  readonly dear: readonly string[]
  readonly said: readonly string[]
}

/** Runs a program until it ends by itself, or has said a line that `until` takes and done what that asks for. */
async function load(args: readonly string[], until?: (line: string) => Promise<boolean>): Promise<Loaded> {
  const coverage = mkdtempSync(join(tmpdir(), 'odradek-loaded-'))
  try {
    const child = spawn(process.execPath, ['--import', TELL_BUILTINS, ...args], {
      cwd: installed.folder,
      env: { ...process.env, NODE_OPTIONS: '', NODE_V8_COVERAGE: coverage },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let errors = ''
    child.stderr.on('data', (chunk) => {
      errors += chunk
    })
    const ended = once(child, 'close')
    const said: string[] = []
    for await (const line of createInterface(child.stdout)) {
      said.push(line)
      if (await until?.(line)) child.kill('SIGTERM')
    }
    expect({ ended: await ended, errors }).toMatchObject({ ended: [0, null] })
    const builtins = JSON.parse(errors.slice(errors.lastIndexOf('\n'))) as string[]
    return {
      files: filesIn(coverage),
      dear: DEAR.filter((name) => builtins.includes(`NativeModule ${name}`)),
      said,
    }
  } finally {
    rmSync(coverage, { recursive: true, force: true })
  }
}

/** Node writes down which scripts it has run. */
function filesIn(coverage: string): string[] {
  const [report = ''] = readdirSync(coverage)
  const { result } = JSON.parse(readFileSync(join(coverage, report), 'utf8')) as { result: { url: string }[] }
  return result.flatMap(({ url }) => url.split('/node_modules/').slice(1))
}

const main = 'node_modules/odradek/dist/cli/main.js'
const isListening = (line: string): boolean => line.startsWith('Ctrl-C')

describe('odradek serve', () => {
  it('has loaded few files when it listens, and nothing that it does not need yet', async () => {
    const { files, dear } = await load([main, 'serve', '--port', '0'], async (line) => isListening(line))
    expect(files).toContain('odradek/dist/cli/main.js')
    expect(files.filter((path) => !path.startsWith('odradek/dist/cli/'))).toEqual([])
    expect(files.length).toBeLessThanOrEqual(MAX_FILES)
    expect(dear).toEqual([])
  })

  it('loads what its options ask for', async () => {
    const options = ['--port', '0', '--metrics-port', '0', '--user', 'alice:secret']
    let healthy = ''
    const { dear } = await load([main, 'serve', ...options], async (line) => {
      const [address] = /http:[^ ]+(?=\/metrics)/.exec(line) ?? []
      if (address !== undefined) healthy = await (await fetch(`${address}/healthz`)).text()
      return isListening(line)
    })
    expect(healthy.trim()).toBe('ok')
    expect(dear).toEqual(['crypto', 'http'])
  })

  it('keeps a directory', async () => {
    const data = join(installed.folder, 'data')
    await load([main, 'serve', '--port', '0', '--data', data], async (line) => isListening(line))
    const { said } = await load([main, 'verify', data])
    expect(said.join('\n')).toMatch(/^sound: /)
  })
})

describe('openBroker', () => {
  it('loads the package alone, and of Node nothing that is dear', async () => {
    const program = `import { openBroker } from 'odradek'
const broker = await openBroker('memory:')
await broker.createTopic('t')
await broker.publish('t', 'hello')
await broker.close()`
    const { files, dear } = await load(['--input-type=module', '--eval', program])
    expect(files).toContain('odradek/dist/index.js')
    expect(files.filter((path) => !path.startsWith('odradek/'))).toEqual([])
    expect(dear).toEqual([])
  })
})

describe('startTestServer', () => {
  it('loads no other package, and of Node nothing that is dear', async () => {
    const program = `import { startTestServer } from 'odradek/testing'
const kafka = await startTestServer()
await kafka.close()`
    const { files, dear } = await load(['--input-type=module', '--eval', program])
    expect(files).toContain('odradek/dist/server/server.js')
    expect(files.filter((path) => !path.startsWith('odradek/'))).toEqual([])
    expect(dear).toEqual([])
  })
})
