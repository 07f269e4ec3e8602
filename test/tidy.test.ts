/** Holds the house rules on src/, and each rule on a snippet that breaks it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { SourceFile } from './tidy/rules.ts'
import { complaintsAbout, cycles, LONG_LINES, lineCount, MAX_LINES } from './tidy/rules.ts'

const root = join(import.meta.dirname, '..', 'src')
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ path: name.split(sep).join('/'), text: readFileSync(join(root, name), 'utf8') }))

describe('src/', () => {
  it.each(sources)('$path keeps the house rules', (file) => {
    expect(complaintsAbout(file)).toEqual([])
  })

  it('imports in no circle', () => {
    expect(cycles(sources)).toEqual([])
  })

  it('is worth a look where a file grows long', () => {
    const long = sources.filter(({ text }) => lineCount(text) > LONG_LINES)
    for (const { path, text } of long) console.info(`hint: src/${path} has ${lineCount(text)} lines`)
    expect(sources.length).toBeGreaterThan(0)
  })
})

/** A file that breaks nothing but what `body` breaks. */
function file(path: string, body: string): SourceFile {
  return { path, text: `/** Owns a thing. */\n${body}\n` }
}

function program(body: string): SourceFile {
  return { path: 'cli/main.ts', text: `#!/usr/bin/env node\n/** Owns a thing. */\n${body}\n` }
}

describe('the rules', () => {
  it.each([
    ['a clean file', file('core/a.ts', "import { b } from '../model/b.ts'\nexport const a = b")],
    ['the clock, in its file', file('model/clock.ts', 'export const now = () => Date.now()')],
    ['Node, where the file engine touches it', file('log/file/fs-node.ts', "import { open } from 'node:fs'")],
    ['Node, at the root', file('index.ts', "import { createHash } from 'node:crypto'")],
    ['an engine, at the root', file('broker.ts', "export const e = () => import('./log/memory/engine.ts')")],
    ['a program, which begins with what runs it', program("import process from 'node:process'")],
    ['prose about timers', file('core/a.ts', "// setTimeout\nexport const a = 'Date.now()'")],
    ['quotes inside a pattern', file('core/a.ts', 'export const a = /[\'"]/\n// setTimeout')],
    ['a catch that acts', file('core/a.ts', 'try { a() } catch (e) { b(e) }')],
    ['a catch that says why it does not', file('core/a.ts', 'try { a() } catch {\n  // Told already.\n}')],
    ['a length of time with its unit', file('core/a.ts', 'let delayMs: number')],
  ])('allow %s', (_, good) => {
    expect(complaintsAbout(good)).toEqual([])
  })

  it.each([
    ['model → core', file('model/a.ts', "import { b } from '../core/b.ts'"), 'model must not import core'],
    [
      'core → engine, also for types',
      file('core/a.ts', "import type { B } from '../log/memory/b.ts'"),
      'core must not import log/memory',
    ],
    [
      'core → engine, over several lines',
      file('core/a.ts', "import {\n  b,\n  c as d,\n} from '../log/memory/b.ts'"),
      'core must not import log/memory',
    ],
    [
      'core → engine, when needed',
      file('core/a.ts', "export const b = () => import('../log/memory/b.ts')"),
      'core must not import log/memory',
    ],
    [
      'core → log/state',
      file('core/deep/a.ts', "export { b } from '../../log/state.ts'"),
      'core must not import log/state.ts',
    ],
    ['engine → core', file('log/memory/a.ts', "import '../../core/b.ts'"), 'log/memory must not import core'],
    [
      'coordinator → root',
      file('coordinator/a.ts', "import { b } from '../broker.ts'"),
      'coordinator must not import broker.ts',
    ],
    [
      'testing → coordinator',
      file('testing/a.ts', "import { b } from '../coordinator/b.ts'"),
      'testing must not import coordinator',
    ],
    [
      'cli → core',
      file('cli/commands/a.ts', "import { b } from '../../core/b.ts'"),
      'cli must not import core',
    ],
    ['anything → cli', file('memory.ts', "import { run } from './cli/run.ts'"), 'nobody imports cli'],
    [
      'a program that says nothing',
      { path: 'cli/main.ts', text: '#!/usr/bin/env node\na()\n' },
      'does not open',
    ],
    ['a folder without a rule', file('attic/a.ts', ''), 'attic is in no zone'],
    ['a stray file of the log', file('log/a.ts', ''), 'log/a.ts is in no zone'],
    [
      'a Node module, in the rest of the file engine',
      file('log/file/journal.ts', "import { open } from 'node:fs'"),
      'node:fs outside',
    ],
    ['a Node module', file('memory.ts', "import { readFile } from 'node:fs'"), 'node:fs outside'],
    ['a Node global', file('core/a.ts', 'export const a = Buffer.from(b)'), 'Buffer outside'],
    ['a timer', file('core/a.ts', 'setTimeout(b, 1)'), 'setTimeout outside'],
    ['a turn', file('core/a.ts', 'globalThis.setImmediate(b)'), 'setImmediate outside'],
    ['wall time', file('core/a.ts', 'const a = Date.now'), 'Date.now outside'],
    ['wall time by an object', file('core/a.ts', 'const a = +new Date()'), 'new Date() outside'],
    ['monotonic time', file('core/a.ts', 'const a = performance.now()'), 'performance. outside'],
    ['time inside a template', file('core/a.ts', `const a = \`\${Date.now()}\``), 'Date.now outside'],
    [
      'no opening comment',
      { path: 'core/a.ts', text: 'export const a = 1\n' },
      'does not open with a comment',
    ],
    ['a default export', file('core/a.ts', 'export default a'), 'export default'],
    ['a barrel', file('core/a.ts', "export * from './b.ts'"), 'export *'],
    ['an empty catch', file('core/a.ts', 'try { a() } catch {}'), 'an empty catch'],
    ['a long file', file('core/a.ts', 'a()\n'.repeat(MAX_LINES)), 'lines, more than'],
    [
      'time without a unit',
      file('core/a.ts', 'interface A { ackTimeout?: number }'),
      'ackTimeout has no unit',
    ],
  ])('refuse %s', (_, bad, complaint) => {
    expect(complaintsAbout(bad)).toEqual([expect.stringContaining(complaint)])
  })

  it('see a circle of values, however long, and none of types', () => {
    const circle = [
      file('core/a.ts', "import { b } from './b.ts'"),
      file('core/b.ts', "import { c } from './c.ts'"),
      file('core/c.ts', "export { a } from './a.ts'"),
    ]
    expect(cycles(circle)).toEqual(['core/a.ts → core/b.ts → core/c.ts → core/a.ts'])
    const types = [
      file('core/a.ts', "import { b } from './b.ts'"),
      file('core/b.ts', "import type { A } from './a.ts'"),
    ]
    expect(cycles(types)).toEqual([])
  })
})
