/**
 * `npm run mutants`: is the judge of the torture any good? Breaks a copy of the sources in one place at a time, and
 * plays scenes until the fault is found. A mutant that survives is a hole in the judge. Exit code 0: all were caught.
 *
 *   --scenes N   scenes per mutant at most (default 3,000)
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

interface Mutant {
  readonly name: string
  readonly file: string
  readonly from: string
  readonly to: string
}

const MUTANTS: readonly Mutant[] = [
  {
    name: 'wakes all at the end of a partition but the last',
    file: 'core/idle-pumps.ts',
    from: 'this.#end = this.#places.length\n',
    to: 'this.#end = this.#places.length - 1\n',
  },
  {
    name: 'takes a record that its handler still has for settled',
    file: 'core/plain-run.ts',
    from: 'if (!member.take(record)) {',
    to: 'if (!member.take(record) && record.state === 99) {',
  },
  {
    name: 'commits beyond what is unsettled',
    file: 'core/window.ts',
    from: 'else if (offset === this.committed) {',
    to: 'else {',
  },
  {
    name: 'hands out a key that is in flight',
    file: 'core/key-chains.ts',
    from: 'return this.#chains?.get(keyIdentity(key))?.tail',
    to: "return this.#chains?.get(keyIdentity(key) + ' ')?.tail",
  },
  {
    name: 'forgets to wake a cursor that waits for a settle of its own',
    file: 'core/pump.ts',
    from: 'if (this.#status === BLOCKED) this.wake()',
    to: 'if (this.#status === LOADING) this.wake()',
  },
  {
    name: 'passes a busy key when a place is taken in a reaction',
    file: 'core/at-hand.ts',
    from: 'if (isConsumed(cursor, columns, row, offset, this.#checked)) continue\n',
    to: '\n',
  },
  {
    name: 'forgets who waits for a member',
    file: 'core/reader.ts',
    from: '    this.passOn(member)\n',
    to: '    if (member === undefined) this.passOn(member)\n',
  },
  {
    name: 'miscounts a drop',
    file: 'core/cursor.ts',
    from: 'this.reader.noteDropped(this, count, from, to, reason)',
    to: 'this.reader.noteDropped(this, count + 1, from, to, reason)',
  },
  {
    name: 'takes a repeated id for a new one',
    file: 'core/publish-ids.ts',
    from: 'this.#window?.get(id, this.#clock.monotonic())',
    to: "this.#window?.get(id + ' ', this.#clock.monotonic())",
  },
  {
    name: 'lets a replayed delivery settle',
    file: 'core/cursor.ts',
    from: "for (const record of this.window) this.reader.settle.fence(record, 'a replay moved its reader')",
    to: '',
  },
  {
    name: 'does not count the attempt of an expiry',
    file: 'core/settle.ts',
    from: 'const successor = this.#comeBack(record, record.attempt + 1, 0)',
    to: 'const successor = this.#comeBack(record, record.attempt - 1, 0)',
  },
  {
    name: 'loses a record that is due again',
    file: 'core/cursor.ts',
    from: '    this.retrying--\n    this.becomesReady(record)',
    to: '    this.retrying--\n    if (record.offset % 7 !== 3) this.becomesReady(record)',
  },
]

const { values } = parseArgs({ options: { scenes: { type: 'string', default: '3000' } } })
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Whether scenes on the mutant fail, hang or crash. */
function isCaught({ file, from, to }: Mutant): boolean {
  const copy = mkdtempSync(join(tmpdir(), 'odradek-mutant-'))
  try {
    for (const part of ['src', 'test/torture'])
      cpSync(join(root, part), join(copy, part), { recursive: true })
    for (const part of ['package.json', 'tsconfig.json']) cpSync(join(root, part), join(copy, part))
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    const path = join(copy, 'src', file)
    const source = readFileSync(path, 'utf8')
    if (!source.includes(from))
      throw new Error(`${file} no longer says "${from}"; the mutant needs another place`)
    writeFileSync(path, source.replace(from, to))
    const args = [
      '--import',
      'tsx',
      join(copy, 'test/torture/main.ts'),
      '--seed',
      '1',
      '--scenes',
      values.scenes,
    ]
    const run = spawnSync(process.execPath, args, { cwd: copy, stdio: 'ignore', timeout: 60_000 })
    return run.status !== 0
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

let survived = 0
for (const mutant of MUTANTS) {
  const caught = isCaught(mutant)
  if (!caught) survived++
  process.stdout.write(`${caught ? 'caught  ' : 'SURVIVED'}  ${mutant.name} (${mutant.file})\n`)
}
process.stdout.write(`${MUTANTS.length - survived} of ${MUTANTS.length} mutants caught\n`)
process.exitCode = survived > 0 ? 1 : 0
