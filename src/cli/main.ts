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

// There is nothing to be tidied up: an interrupt ends the process, also in the middle of a write that nobody takes.
process.exitCode = await run(process.argv.slice(2), { stdout, stderr, monotonic: () => clock.monotonic() })
