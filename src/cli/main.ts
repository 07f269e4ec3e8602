#!/usr/bin/env node
/** The program behind the command `odradek`: ties the process to `run`. */
import process from 'node:process'
import { SystemClock } from '../model/clock.ts'
import { run } from './run.ts'

const { stdout, stderr } = process
const clock = new SystemClock()

// Whoever wrote hears of it, too.
stdout.on('error', () => {})
stderr.on('error', () => {})

/** Once is enough: a second one has nobody who listens, so it ends the process as it would without us. */
function interrupted(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort())
  return controller.signal
}

process.exitCode = await run(process.argv.slice(2), {
  stdout,
  stderr,
  monotonic: () => clock.monotonic(),
  interrupted,
})
