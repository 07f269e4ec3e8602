/**
 * Runs the modules named on the command line one after the other and prints a line of JSON for each: what it
 * wrote by `console.log`, and why it failed, if it did.
 */
import { pathToFileURL } from 'node:url'
import { format } from 'node:util'

for (const file of process.argv.slice(2)) {
  let output = ''
  console.log = (...args: unknown[]): void => {
    output += `${format(...args)}\n`
  }
  let error: string | null = null
  try {
    await import(pathToFileURL(file).href)
  } catch (thrown) {
    error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
  }
  process.stdout.write(`${JSON.stringify({ file, output, error })}\n`)
}
