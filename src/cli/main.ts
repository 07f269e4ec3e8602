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

// Nothing is left behind but a line of progress, perhaps. The second time the signal does what it always does.
process.once('SIGINT', () => {
  if (stderr.isTTY) stderr.write('\r\x1b[K')
  process.kill(process.pid, 'SIGINT')
})

process.exitCode = await run(process.argv.slice(2), { stdout, stderr, monotonic: () => clock.monotonic() })
