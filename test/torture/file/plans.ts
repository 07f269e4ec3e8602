/**
 * What every process on a directory is told to do, and how it is to die. All of it follows from the dice, whatever became
 * of the processes before: so a seed repeats it, as far as a scheduler lets anything be repeated.
 */
import type { Dice } from '../dice.ts'
import { STEPS, type Strike } from './steps.ts'

/** How a process is to end. */
export type Death =
  /** When so many lines of it were read. */
  | { readonly at: 'line'; readonly line: number }
  /** So long after its start, in shares of the time that one needs to get ready. */
  | { readonly at: 'time'; readonly share: number }
  /** By itself, at a step. */
  | { readonly at: 'step'; readonly strike: Strike }
  /** It may live. */
  | { readonly at: 'end' }

export interface Plan {
  readonly task: 'work' | 'close' | 'end'
  readonly seed: number
  /** Operations of its publishers. */
  readonly steps: number
  readonly death: Death
}

type Step = (typeof STEPS)[number]

const LINES = 600
/** How often a process comes to a step; twice where nothing is said. */
const TIMES: { readonly [step in Step]?: number } = {
  'write journal': 30,
  'sync journal': 30,
  'write segment': 20,
  'sync segment': 12,
  'truncate segment': 8,
  'create segment': 6,
  'make the directory log': 6,
  'sync directory log': 6,
  'remove segment': 6,
  'create index': 5,
  'write index': 5,
  'remove index': 5,
}
/** Only the first process makes them. */
const FIRST: Step = 'create journal'
/** What is done with half a group, by the process after the one that left it. */
const TORN: readonly Step[] = STEPS.filter((step) => step.endsWith('torn'))
const USUAL: readonly Step[] = STEPS.filter((step) => step !== FIRST && !TORN.includes(step))

/** For ever. `simply`: nobody dies at a step. */
export function* plansOf(dice: Dice, simply: boolean): Generator<Plan> {
  if (!simply && dice.chance(0.2)) yield plan(dice, strike(dice, FIRST, ['before', 'after']))
  for (;;) {
    const x = dice.share()
    if (simply || x < 0.35) yield plan(dice, { at: 'line', line: 10 + dice.below(LINES) })
    else if (x < 0.45) yield plan(dice, { at: 'time', share: dice.share() * 1.2 })
    else if (x < 0.9) yield plan(dice, strike(dice, dice.pick(USUAL)))
    else {
      yield plan(dice, strike(dice, 'write journal', ['torn']))
      yield plan(dice, strike(dice, dice.pick(TORN)))
    }
  }
}

export function lastPlan(dice: Dice): Plan {
  return { ...plan(dice, { at: 'end' }), task: 'end' }
}

function plan(dice: Dice, death: Death): Plan {
  const task = dice.chance(0.25) ? 'close' : 'work'
  return { task, seed: dice.below(2 ** 31), steps: 20 + dice.below(100), death }
}

function strike(dice: Dice, step: Step, ways: readonly Strike['when'][] = waysOf(step)): Death {
  const times = TIMES[step] ?? 2
  // Often right at the start, which is in recovery.
  const nth = 1 + dice.below(dice.chance(0.4) ? 2 : times)
  return { at: 'step', strike: { step, nth, when: dice.pick(ways) } }
}

function waysOf(step: Step): readonly Strike['when'][] {
  return step.startsWith('write') ? ['before', 'after', 'torn'] : ['before', 'after']
}
