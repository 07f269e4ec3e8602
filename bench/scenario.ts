/**
 * What a bench is. A scenario is one topology with several contenders; it runs in a process of its own
 * and answers samples. Rows turn samples into lines of the table: mostly ratios of two contenders taken in
 * the same round, because absolute figures drift with the machine and ratios do not.
 */

/** Nanoseconds per record (or another figure a row understands), one per round, by contender. */
export interface Samples {
  readonly [contender: string]: readonly number[]
}

/** How long to look. */
export interface Plan {
  /** Rounds per process; every contender runs once in each, in turn. */
  readonly rounds: number
  /** Milliseconds one contender should take in one round. */
  readonly roundMs: number
  /** `cpu`: processor time of the whole process, for machines that are busy with other things. */
  readonly clock: 'wall' | 'cpu'
  /** Ten times the data, where there is much of it already. */
  readonly large: boolean
}

/** What a row must reach: at least, or at most, `value` in the row's unit. */
export interface Target {
  readonly bound: 'at least' | 'at most'
  readonly value: number
}

export type Unit = 'ratio' | 'bytes' | 'MiB' | 'ms' | 'GB/s' | 's/GB' | 'count'

/** One line of the table. */
export interface Row {
  readonly subject: string
  readonly against: string
  readonly unit: Unit
  /** `null`: shown for scale. */
  readonly target: Target | null
  /** One figure per round of one process. */
  figures(samples: Samples): number[]
}

/** What is shown of samples, wherever they come from. */
export interface Table {
  readonly name: string
  /** What is moved, by whom, to whom: a sentence for the table's heading. */
  readonly title: string
  /** What one unit of the rates is. Empty: rates are not shown. */
  readonly moved: string
  readonly rows: readonly Row[]
}

export interface Scenario extends Table {
  /** Processes that run it, where fewer do than usual. */
  readonly processes?: number
  sample(plan: Plan): Promise<Samples>
}

export function atLeast(value: number): Target {
  return { bound: 'at least', value }
}

export function atMost(value: number): Target {
  return { bound: 'at most', value }
}

/** How many times as fast `subject` is as `against`. */
export function speed(subject: string, against: string, target: Target | null = null): Row {
  return {
    subject,
    against,
    target,
    unit: 'ratio',
    figures: (samples) => divide(of(samples, against), of(samples, subject)),
  }
}

/** How many times as long `subject` takes as `against`. */
export function time(subject: string, against: string, target: Target | null = null): Row {
  return {
    subject,
    against,
    target,
    unit: 'ratio',
    figures: (samples) => divide(of(samples, subject), of(samples, against)),
  }
}

/** The figure itself. */
export function absolute(subject: string, unit: Unit, target: Target | null = null): Row {
  return { subject, against: '–', target, unit, figures: (samples) => [...of(samples, subject)] }
}

function of(samples: Samples, contender: string): readonly number[] {
  const found = samples[contender]
  if (found === undefined) throw new Error(`no contender is called "${contender}"`)
  return found
}

function divide(above: readonly number[], below: readonly number[]): number[] {
  return above.map((value, round) => value / (below[round] ?? Number.NaN))
}
