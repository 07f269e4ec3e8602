/** Runs every example as a user would, one after the other, and fails where one fails or says nothing. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './package.ts'

const LIMIT_MS = 60_000
const folder = join(root, 'examples')
const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')
const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
)

let failed = names.length === 0
for (const name of names) {
  const started = performance.now()
  const run = spawnSync(process.execPath, [tsx, join(folder, name)], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
  })
  const good = run.status === 0 && run.stdout.trim() !== ''
  console.log(`${good ? 'ok' : 'FAILED'}  ${name}  ${Math.round(performance.now() - started)} ms`)
  if (good) continue
  failed = true
  console.log(`exit ${run.status ?? run.signal}\n${run.stdout}${run.stderr}`)
}
if (failed) process.exitCode = 1
