/**
 * `npm run torture -- --wire`: frames of Kafka's protocol that are broken in every way, over every API and version.
 *
 *   mutated   random changes, --frames N of them (default 1,000,000; --short: 100,000)
 *   lies      every length and count of every message, one at a time, too large or negative
 *   memory    frames that hold as many items as they can: what is read takes a small multiple of them (not where fewer
 *             than 100,000 frames are asked for)
 *
 *   --seed N  first seed (default: the time)
 *
 * With a control that must fail: a reader that believes every count. Progress goes to standard error.
 */
import process from 'node:process'
import { Dice } from '../dice.ts'
import { CORPUS } from './corpus.ts'
import { Credulous } from './credulous.ts'
import { judgeLies, judgeMutated, Verdicts } from './judge.ts'
import { MAX_MULTIPLE, multiples } from './memory.ts'

export interface WireOptions {
  readonly seed: number
  readonly frames: number
  readonly isStopped: () => boolean
}

const SHOWN = 10
const TELL_EVERY = 100_000
/** Measuring memory takes as long as some hundred thousand frames. */
const MEMORY_FROM = 100_000

/** Answers whether all is well. */
export async function tortureWire({ seed, frames, isStopped }: WireOptions): Promise<boolean> {
  process.stdout.write(`seed ${seed}, ${CORPUS.length} messages\n`)
  const lies = new Verdicts()
  for (const sample of CORPUS) judgeLies(sample, lies)
  tell('lies', lies)

  const control = new Verdicts()
  for (const sample of CORPUS) judgeLies(sample, control, Credulous)
  const caught = control.faults.length
  process.stdout.write(
    caught > 0
      ? `  control: a reader that believes every count was caught ${caught} times, as it must\n`
      : '  FAULT control: a reader that believes every count was not caught; it must\n',
  )

  const random = new Verdicts()
  const dice = new Dice(seed)
  while (random.frames < frames && random.faults.length < SHOWN && !isStopped()) {
    judgeMutated(dice.pick(CORPUS), dice.pick(CORPUS), dice, random)
    if (random.frames % TELL_EVERY === 0) {
      process.stderr.write(`${random.frames} frames, ${random.faults.length} with faults\n`)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  tell('mutated', random)

  const found = lies.faults.length + random.faults.length + (caught > 0 ? 0 : 1)
  if (found > 0 || isStopped() || frames < MEMORY_FROM) return found === 0

  const [largest] = multiples()
  if (largest === undefined) throw new Error('there is no array in any message')
  process.stdout.write(`memory: at most ${largest.multiple.toFixed(1)} times the frame, ${largest.name}\n`)
  const isSmall = largest.multiple <= MAX_MULTIPLE
  if (!isSmall) process.stdout.write(`  FAULT that is more than ${MAX_MULTIPLE} times\n`)
  return isSmall
}

function tell(title: string, { frames, refused, faults }: Verdicts): void {
  process.stdout.write(`${title}: ${frames} frames, ${refused} refused, ${faults.length} with faults\n`)
  for (const fault of faults.slice(0, SHOWN)) process.stdout.write(`  ${fault}\n`)
}
