/** What this process has worked, in milliseconds: on a busy machine a clock tells how long others did. */
import process from 'node:process'

const US_PER_MS = 1_000

export function busyMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / US_PER_MS
}
