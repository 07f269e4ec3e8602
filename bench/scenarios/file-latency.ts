/** From `publish` to the handler's first line through the disk, on an idle loop, beside a bare write and fdatasync. */
import { strict as assert } from 'node:assert'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { closeFiles, freshDirectory, openFiles, recordOf, removeDirectory } from '../contenders/files.ts'
import { absolute, type Plan, type Row, type Samples, type Scenario, time } from '../scenario.ts'
import { median, quantile } from '../statistics.ts'

const TRIES = 100

/** Does it once, and resolves when it is through. */
type Once = () => Promise<unknown>

interface Subject {
  readonly once: Once
  close(): Promise<void>
}

async function odradek(durability: 'fsync' | 'os'): Promise<Subject> {
  const files = await openFiles({ durability })
  let arrived: (value: unknown) => void = () => {}
  let handled = 0
  let published = 0
  await files.topic.subscribe(
    () => {
      handled++
      arrived(undefined)
    },
    { id: 'reader' },
  )
  const record = recordOf(0)
  return {
    once() {
      published++
      return new Promise((resolve) => {
        arrived = resolve
        void files.topic.publish(record)
      })
    },
    async close() {
      assert.equal(handled, published)
      await closeFiles(files)
    },
  }
}

/** The same two calls, awaited as a program awaits them. */
async function bare(): Promise<Subject> {
  const directory = freshDirectory()
  const handle = await open(join(directory, 'log'), 'w')
  const record = recordOf(0)
  return {
    async once() {
      await handle.write(record)
      await handle.datasync()
    },
    async close() {
      await handle.close()
      removeDirectory(directory)
    },
  }
}

/** Nanoseconds on a loop that has just slept. */
async function elapsed(once: Once): Promise<number> {
  await sleep(1)
  const from = performance.now()
  await once()
  return (performance.now() - from) * 1e6
}

const FSYNC = 'odradek, fsync'
const OS = 'odradek, os'
const BARE = 'write + fdatasync'
const p99Of = (name: string): string => `${name}, p99`

async function sample(plan: Plan): Promise<Samples> {
  const subjects = new Map([
    [FSYNC, await odradek('fsync')],
    [OS, await odradek('os')],
    [BARE, await bare()],
  ])
  const samples: { [name: string]: number[] } = {}
  for (let round = -1; round < plan.rounds; round++) {
    const figures = new Map<string, number[]>()
    for (let i = 0; i < TRIES; i++) {
      for (const [name, { once }] of subjects) {
        const tries = figures.get(name) ?? []
        tries.push(await elapsed(once))
        figures.set(name, tries)
      }
    }
    if (round < 0) continue // warm-up
    for (const [name, tries] of figures) {
      samples[name] = [...(samples[name] ?? []), median(tries)]
      samples[p99Of(name)] = [...(samples[p99Of(name)] ?? []), quantile(tries, 0.99) / 1e6]
    }
  }
  for (const { close } of subjects.values()) await close()
  return samples
}

const rows: readonly Row[] = [
  time(FSYNC, BARE),
  time(OS, BARE),
  absolute(p99Of(FSYNC), 'ms'),
  absolute(p99Of(OS), 'ms'),
  absolute(p99Of(BARE), 'ms'),
]

export const fileLatency: Scenario = {
  name: 'file-latency',
  title: 'Publish to handler through the disk on an idle loop (time: less is better)',
  moved: '',
  rows,
  sample,
}
