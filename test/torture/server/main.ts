/**
 * `npm run torture -- --server`: a whole server under fire. Rounds of hostile clients beside an honest one, in memory, and
 * every tenth round on files; what a round is and what must hold is told in round.ts.
 *
 *   --frames N   hostile frames in all (default 1,000,000; --short: 50,000)
 *   --seed N     first seed (default: the time); a round is repeated by its own
 *   --trials N   so many rounds, whatever their frames
 *
 * With controls that must fail: a handler that throws on one value of one field, and one that forgets to answer.
 * Memory is measured every few rounds: what a round has made is gone when it is over.
 */
import process from 'node:process'
import type { Handler } from '../../../src/server/handler.ts'
import { heartbeat } from '../../../src/server/handlers/12-heartbeat.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { fileDisk } from '../../support/disks.ts'
import { usedBytes } from '../../support/garbage.ts'
import { type Outcome, playRound } from './round.ts'

export interface ServerTortureOptions {
  readonly seed: number
  readonly frames: number
  readonly trials: number
  readonly isStopped: () => boolean
}

const FRAMES_A_ROUND = 5_000
const FILES_EVERY = 10
const MEASURED_EVERY = 20
/** What a process may grow by for reasons of its own, such as compiled code. */
const MAX_GROWTH_BYTES = 48 * 2 ** 20
const SHOWN = 10

/** Answers whether all is well. */
export async function tortureServer({
  seed,
  frames,
  trials,
  isStopped,
}: ServerTortureOptions): Promise<boolean> {
  let [sent, failed, round, first] = [0, 0, 0, 0]
  const sums = { answered: 0, closed: 0, acknowledged: 0 }
  while (sent < frames && round < trials && failed < SHOWN && !isStopped()) {
    const outcome = await playSeed(seed + round)
    sent += outcome.frames
    sums.answered += outcome.answered
    sums.closed += outcome.closed
    sums.acknowledged += outcome.acknowledged
    round++
    if (outcome.faults.length > 0) failed++
    tell(seed + round - 1, outcome)
    process.stderr.write(`${sent} frames, ${failed} rounds with faults\n`)
    if (round % MEASURED_EVERY !== 0) continue
    const bytes = await usedBytes()
    first ||= bytes
    if (bytes - first <= MAX_GROWTH_BYTES) continue
    failed++
    process.stdout.write(
      `  FAULT after ${round} rounds ${Math.round((bytes - first) / 2 ** 20)} MiB more are in use\n`,
    )
    break
  }
  const { answered, closed, acknowledged } = sums
  process.stdout.write(
    `seed ${seed}: ${sent} frames in ${round} rounds, ${answered} answered, ${closed} connections ended, ` +
      `${acknowledged} honest records acknowledged; ${failed} rounds with faults\n`,
  )
  return (await controls(seed)) && failed === 0
}

/** On files every tenth one, so that a seed says all. */
export async function playSeed(seed: number, frames = FRAMES_A_ROUND): Promise<Outcome> {
  if (seed % FILES_EVERY !== 0) return playRound({ seed, frames })
  const clock = new ManualClock()
  return playRound({ seed, frames: Math.ceil(frames / 5), engine: await fileDisk().open(clock), clock })
}

function tell(seed: number, { faults }: Outcome): void {
  if (faults.length === 0) return
  process.stdout.write(`seed ${seed}:\n`)
  for (const fault of faults.slice(0, SHOWN)) process.stdout.write(`  ${fault}\n`)
  process.stdout.write(`  again: npm run torture -- --server --seed ${seed} --trials 1\n`)
}

/** Throws on one value of one field. */
const THROWS: Handler = {
  ...heartbeat,
  answer(request, call, world) {
    if ((request as { generationId: number }).generationId === 2 ** 31 - 1)
      throw new TypeError('not so large')
    return heartbeat.answer(request, call, world)
  },
}

/** Never answers whom it does not know. */
const FORGETS: Handler = {
  ...heartbeat,
  answer(request, call, world) {
    if ((request as { memberId: string }).memberId === '') return new Promise(() => {})
    return heartbeat.answer(request, call, world)
  },
}

const CONTROL_FRAMES = 3_000
/** One value of one field may take as many rounds to be sent. */
const CONTROL_ROUNDS = 10

/** Servers that are at fault, which must be found out. */
export const CONTROLS = [
  ['a handler that throws on one value', THROWS],
  ['a handler that forgets to answer', FORGETS],
] as const

/** Whether a server with that handler is found out, within some rounds from that seed on. */
export async function isFound(handler: Handler, seed: number): Promise<boolean> {
  for (let round = 0; round < CONTROL_ROUNDS; round++) {
    const { faults } = await playRound({ seed: seed + round, frames: CONTROL_FRAMES, handlers: [handler] })
    if (faults.length > 0) return true
  }
  return false
}

async function controls(seed: number): Promise<boolean> {
  let allFound = true
  for (const [title, handler] of CONTROLS) {
    const found = await isFound(handler, seed)
    process.stdout.write(
      `  ${found ? '' : 'FAULT '}control: ${title} was ${found ? 'found, as it must' : 'not found'}\n`,
    )
    allFound &&= found
  }
  return allFound
}
