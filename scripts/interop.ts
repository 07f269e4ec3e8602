/**
 * `npm run interop`: makes ready the Kafka clients that can be had here, and tries everything that is on this machine:
 * npm's packages, Java's client and Kafka's own programs where Maven is, Go's where Go is; kcat and kafka-python are the system's.
 *
 *   --write       writes docs/compatibility.md
 *   --storms N    so many storms (test/interop/storm.ts) and nothing else; --seed N repeats one
 *
 * What else is given goes to Vitest: a part of a file's name chooses a client.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { CLIENTS } from '../test/interop/clients.ts'
import { matrixOf, type Outcome } from '../test/interop/matrix.ts'
import { root } from './package.ts'

const clients = join(root, 'test', 'interop', 'clients')
const { values, positionals, tokens } = parseArgs({
  options: { write: { type: 'boolean' }, storms: { type: 'string' }, seed: { type: 'string' } },
  allowPositionals: true,
  strict: false,
  tokens: true,
})
const OWN = new Set(['write', 'storms', 'seed'])
const passedOn = tokens.flatMap((token) =>
  token.kind === 'option' && !OWN.has(token.name)
    ? [token.value === undefined ? token.rawName : `${token.rawName}=${token.value}`]
    : [],
)

function run(command: string, given: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): boolean {
  const { status } = spawnSync(command, given, { cwd, stdio: 'inherit', env: { ...process.env, ...env } })
  return status === 0
}

function has(command: string, ...given: string[]): boolean {
  return spawnSync(command, given).status === 0
}

/** Headers of this Node lie beside it, mostly: then nothing is fetched to compile against. */
function headers(): NodeJS.ProcessEnv {
  const prefix = dirname(dirname(process.execPath))
  return existsSync(join(prefix, 'include', 'node', 'node.h')) ? { npm_config_nodedir: prefix } : {}
}

function makeReady(): void {
  if (!existsSync(join(clients, 'node_modules', 'node-rdkafka', 'build', 'Release'))) {
    // librdkafka is compiled here, which takes minutes; without it the others are tried all the same.
    if (!run('npm', ['ci'], clients, headers())) run('npm', ['ci', '--ignore-scripts'], clients)
  }
  for (const [name, jar] of [
    ['java', 'driver.jar'],
    ['tools', 'word-count.jar'],
  ] as const) {
    const folder = join(clients, name)
    if (!existsSync(join(folder, 'target', jar)) && has('mvn', '-version'))
      run('mvn', ['-q', '-B', 'package'], folder)
  }
  const go = join(clients, 'franz-go')
  if (!existsSync(join(go, 'driver')) && has('go', 'version')) run('go', ['build', '-o', 'driver', '.'], go)
}

/** In the order of the clients; one that was not tried now is not in it. */
function writeMatrix(outcomes: string): void {
  const outcomesOf = (id: string): Outcome[] => {
    const file = join(outcomes, `${id}.json`)
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
  }
  const all = CLIENTS.flatMap(({ id }) => outcomesOf(id))
  writeFileSync(join(root, 'docs', 'compatibility.md'), matrixOf(all, outcomesOf('programs')))
}

makeReady()
const outcomes = mkdtempSync(join(tmpdir(), 'odradek-outcomes-'))
const env: NodeJS.ProcessEnv = {
  ODRADEK_INTEROP_OUTCOMES: outcomes,
  ...(values.storms === undefined ? {} : { ODRADEK_STORMS: String(values.storms) }),
  ...(values.seed === undefined ? {} : { ODRADEK_STORM_SEED: String(values.seed) }),
}
const which = values.storms === undefined && values.seed === undefined ? positionals : ['storm']
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const config = ['run', '--config', 'vitest.interop.config.ts', ...passedOn, ...which]
process.exitCode = run(process.execPath, [vitest, ...config], root, env) ? 0 : 1
if (values.write === true) writeMatrix(outcomes)
rmSync(outcomes, { recursive: true })
