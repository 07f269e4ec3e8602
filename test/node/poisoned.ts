/**
 * A process whose handler kills it: it opens the directory of its first argument, subscribes, and dies with the first
 * record that says `kill` in the middle of its delivery. What it was handed out it says on its standard output.
 */
import { writeSync } from 'node:fs'
import process from 'node:process'
import { openBroker } from '../../src/index.ts'

const broker = await openBroker(`file:${process.argv[2]}`)
const jobs = await broker.createTopic<string>('jobs')
await jobs.subscribe(
  ({ value, attempt }) => {
    writeSync(1, `${value} ${attempt}\n`)
    if (value === 'kill') process.kill(process.pid, 'SIGKILL')
  },
  { group: 'workers', from: 'earliest', order: 'partition', retry: { attempts: 3 } },
)
await broker.idle()
await broker.close()
