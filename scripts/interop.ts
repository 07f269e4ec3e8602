/**
 * `npm run interop`: installs the Kafka clients that are npm packages, and tries everything that is on this machine
 * (kcat and kafka-python are Debian's). `--write` writes docs/compatibility.md.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './package.ts'

const clients = join(root, 'test', 'interop', 'clients')
const args = process.argv.slice(2)
const write = args.includes('--write')
const rest = args.filter((each) => each !== '--write')

function run(command: string, given: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): boolean {
  const { status } = spawnSync(command, given, { cwd, stdio: 'inherit', env: { ...process.env, ...env } })
  return status === 0
}

if (!existsSync(join(clients, 'node_modules', 'node-rdkafka', 'build'))) {
  // librdkafka is compiled here, which takes minutes; without it the others are tried all the same.
  if (!run('npm', ['ci'], clients)) run('npm', ['ci', '--ignore-scripts'], clients)
}
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const config = ['run', '--config', 'vitest.interop.config.ts', ...rest]
const env = write ? { ODRADEK_WRITE_MATRIX: '1' } : {}
process.exitCode = run(process.execPath, [vitest, ...config], root, env) ? 0 : 1
