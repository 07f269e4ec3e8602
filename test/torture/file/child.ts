/**
 * A process that is there to be killed: it opens a data directory, reads all of it, works, and tells of everything on
 * its standard output, a line each, written before it goes on. What it is to do stands in its first argument.
 *
 *   open ─► everything is read ─► readers, publishers ─► (killed) or closed
 *   open ─► everything is read ─► readers, until nothing is left ─► everything is read ─► close ─► open ─► … ─► close
 */
import { writeSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { type Broker, type FileOptions, openBroker } from '../../../src/index.ts'
import { SystemClock } from '../../../src/model/clock.ts'
import { Dice } from '../dice.ts'
import { Crew } from './crew.ts'
import { type Entry, Ledger } from './ledger.ts'
import type { Left } from './left.ts'
import { createTopics, Load, type Surroundings } from './load.ts'
import { look, readLetters } from './look.ts'
import { lie, Steps, type Strike } from './steps.ts'
import { watchStores } from './watch.ts'

export interface Orders {
  readonly directory: string
  readonly seed: number
  readonly left: Left
  readonly files: FileOptions
  /** `work` for so many steps, `work` and then `close`, or bring everything to its `end`. */
  readonly task: 'work' | 'close' | 'end'
  readonly steps: number
  readonly strike: Strike | undefined
  /** Negative control. */
  readonly lies: boolean
}

const PUBLISHERS = 4
const LIE_MS = 30

const orders = JSON.parse(process.argv[2] as string) as Orders
const clock = new SystemClock()
const ledger = new Ledger(say)
const steps = new Steps(orders.strike, (step) => ledger.note({ fact: 'struck', step }))
let broker: Broker | undefined

function say(entry: Entry): void {
  const line = Buffer.from(`${JSON.stringify(entry)}\n`)
  for (let done = 0; done < line.length; ) {
    try {
      done += writeSync(1, line, done)
    } catch (error) {
      // The pipe is full; whoever reads it is busy.
      if ((error as { code?: string }).code !== 'EAGAIN') throw error
    }
  }
}

async function open(): Promise<Broker> {
  const began = performance.now()
  const complain = (details: object, message: string): void => {
    ledger.fault(`the broker logged: ${message}; ${storyOf((details as { error?: unknown }).error)}`)
  }
  const quiet = (): void => {}
  const opened = await openBroker(`file:${orders.directory}`, {
    ...orders.files,
    commitFlushMs: 3,
    logger: { debug: quiet, info: quiet, warn: quiet, error: complain },
  })
  ledger.note({ fact: 'opened', ms: performance.now() - began })
  return opened
}

/** An error, and what led to it. */
function storyOf(error: unknown): string {
  const { cause } = (error ?? {}) as { cause?: unknown }
  return cause === undefined ? String(error) : `${String(error)}, since ${storyOf(cause)}`
}

function surroundings(at: Broker): Surroundings {
  const dice = new Dice(orders.seed)
  return {
    broker: at,
    ledger,
    dice,
    left: orders.left,
    refusals: new Set(['CLOSED', 'TOO_LARGE']),
    sleep: setTimeout,
  }
}

async function start(): Promise<Surroundings> {
  const opened = await open()
  broker = opened
  await createTopics(opened)
  await look({ broker: opened, ledger, topics: new Map(orders.left.topics) })
  tellSteps()
  ledger.note({ fact: 'ready' })
  return surroundings(opened)
}

async function work(): Promise<void> {
  const at = await start()
  await new Crew(at).join()
  const load = new Load(at)
  const working = load.run(orders.steps, PUBLISHERS)
  // Closing while they work is a part of it.
  if (orders.task === 'work') await working
  else await Promise.race([working, at.sleep(at.dice.below(60))])
  tellSteps()
  ledger.note({ fact: 'worked' })
  if (orders.task === 'work') return
  load.stop()
  await Promise.all([close(at.broker), working])
  ledger.note({ fact: 'closed' })
}

async function close(at: Broker): Promise<void> {
  await at.close()
  ledger.history.close()
  tellSteps()
}

async function end(): Promise<void> {
  const at = await start()
  const crew = new Crew(at)
  await crew.join()
  await new Load(at).settleIds()
  await crew.drained()
  await look({ broker: at.broker, ledger })
  await readLetters(at.broker, ledger)
  await close(at.broker)
  const again = await open()
  broker = again
  await look({ broker: again, ledger })
  await lookForLitter(again)
  await close(again)
  ledger.note({ fact: 'closed' })
}

/** Every directory of a log belongs to a topic. */
async function lookForLitter(at: Broker): Promise<void> {
  const ids = new Set(at.listTopics().map((name) => at.describe(name).id))
  for (const name of await readdir(join(orders.directory, 'logs'))) {
    if (!ids.has(name.slice(0, name.lastIndexOf('-')))) ledger.fault(`logs/${name} belongs to no topic`)
  }
}

function tellSteps(): void {
  ledger.note({ fact: 'steps', counts: steps.counts })
}

process.on('unhandledRejection', (error) => ledger.fault(`unhandled rejection: ${String(error)}`))
if (orders.lies) lie(LIE_MS)
steps.install()
watchStores(ledger, clock, () => broker)
try {
  await (orders.task === 'end' ? end() : work())
} catch (error) {
  ledger.fault(`the process failed: ${error instanceof Error ? error.stack : String(error)}`)
  process.exit(1)
}
if (orders.task === 'work') setInterval(() => {}, 1_000)
