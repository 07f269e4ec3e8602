/**
 * `npm run mutants`: is the judge of the torture any good? Breaks a copy of the sources in one place at a time, and
 * plays scenes, or breaks frames, until the fault is found. A mutant that survives is a hole in the judge. Exit code 0:
 * all were caught.
 *
 *   --scenes N   scenes per mutant at most (default 3,000)
 *   --frames N   frames per mutant at most (default 50,000)
 *   --only PART  mutants of files whose path contains it
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

/** What broken frames must find. */
const WIRE_MUTANTS: readonly Mutant[] = [
  {
    name: 'believes how many items there are',
    file: 'wire/types.ts',
    from: 'if (count * minBytes > from.left) {',
    to: 'if (count * minBytes > from.left * 1e12) {',
  },
  {
    name: 'believes how many tagged fields there are',
    file: 'wire/schema.ts',
    from: 'if (count * 2 > from.left)',
    to: 'if (count * 0 > from.left)',
  },
  {
    name: 'believes how long a tagged field is',
    file: 'wire/schema.ts',
    from: 'if (sizeBytes > from.left)',
    to: 'if (sizeBytes < 0)',
  },
  {
    name: 'reads beyond the frame',
    file: 'wire/reader.ts',
    from: 'if (sizeBytes > this.bytes.length - from) {',
    to: 'if (sizeBytes > this.bytes.length + 8 - from) {',
  },
  {
    name: 'takes any negative length for null',
    file: 'wire/types.ts',
    from: 'if (length >= 0 || (length === -1 && nullable)) return length',
    to: 'if (length >= 0 || nullable) return length',
  },
  {
    name: 'writes long varints wrongly',
    file: 'wire/writer.ts',
    from: 'rest >>>= 7',
    to: 'rest >>>= 8',
  },
]

const { values } = parseArgs({
  options: {
    scenes: { type: 'string', default: '3000' },
    frames: { type: 'string', default: '50000' },
    only: { type: 'string', default: '' },
  },
})
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Whether the torture of the mutant fails, hangs or crashes. */
function isCaught({ file, from, to }: Mutant, limits: readonly string[]): boolean {
  const copy = mkdtempSync(join(tmpdir(), 'odradek-mutant-'))
  try {
    for (const part of ['src', 'test/torture', 'test/support', 'test/wire', 'test/fixtures/messages'])
      cpSync(join(root, part), join(copy, part), { recursive: true })
    for (const part of ['package.json', 'tsconfig.json']) cpSync(join(root, part), join(copy, part))
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    const path = join(copy, 'src', file)
    const source = readFileSync(path, 'utf8')
    if (!source.includes(from))
      throw new Error(`${file} no longer says "${from}"; the mutant needs another place`)
    writeFileSync(path, source.replace(from, to))
    const args = ['--import', 'tsx', join(copy, 'test/torture/main.ts'), '--seed', '1', ...limits]
    const run = spawnSync(process.execPath, args, { cwd: copy, stdio: 'ignore', timeout: 120_000 })
    return run.status !== 0
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

const RUNS = [
  ...MUTANTS.map((mutant) => ({ mutant, limits: ['--scenes', values.scenes] })),
  ...WIRE_MUTANTS.map((mutant) => ({ mutant, limits: ['--wire', '--frames', values.frames] })),
].filter(({ mutant }) => mutant.file.includes(values.only))

const NOTHING: Mutant = { name: 'changes nothing', file: 'core/window.ts', from: '', to: '' }
for (const limits of [
  ['--scenes', '100'],
  ['--wire', '--frames', '1000'],
]) {
  if (isCaught(NOTHING, limits))
    throw new Error(`the torture fails where nothing is broken: ${limits.join(' ')}`)
}

let survived = 0
for (const { mutant, limits } of RUNS) {
  const caught = isCaught(mutant, limits)
  if (!caught) survived++
  process.stdout.write(`${caught ? 'caught  ' : 'SURVIVED'}  ${mutant.name} (${mutant.file})\n`)
}
process.stdout.write(`${RUNS.length - survived} of ${RUNS.length} mutants caught\n`)
process.exitCode = survived > 0 ? 1 : 0
