#!/usr/bin/env node
/** The program behind the command `odradek`: ties the process to `run`. */
import process from 'node:process'
import { addAbortSignal } from 'node:stream'
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

/** Opened by whoever reads it: a command that does not must not wait for it to end. */
async function* stdin(signal: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
  try {
    for await (const chunk of addAbortSignal(signal, process.stdin)) yield chunk
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

process.exitCode = await run(process.argv.slice(2), {
  stdout,
  stderr,
  stdin,
  env: process.env,
  monotonic: () => clock.monotonic(),
  interrupted,
})
