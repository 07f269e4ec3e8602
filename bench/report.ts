/** Turns samples into lines, and lines into text for people, Markdown for the docs, or JSON. */
import type { Environment } from './environment.ts'
import type { Row, Samples, Table, Unit } from './scenario.ts'
import { median, type Spread, spread } from './statistics.ts'

export interface Line {
  readonly scenario: string
  readonly subject: string
  readonly against: string
  readonly unit: Unit
  readonly target: { readonly bound: 'at least' | 'at most'; readonly value: number } | null
  readonly measured: Spread
  /** `null` where there is no target. */
  readonly reached: boolean | null
  /** Median rates of subject and peer, per second; only ratios are comparable between machines. */
  readonly rates: readonly number[] | null
}

/** The lines of one table, from the samples of every process that ran it. */
export function linesOf(scenario: Table, processes: readonly Samples[]): Line[] {
  return scenario.rows.map((row) => {
    const measured = spread(processes.flatMap((samples) => row.figures(samples)))
    return {
      scenario: scenario.name,
      subject: row.subject,
      against: row.against,
      unit: row.unit,
      target: row.target,
      measured,
      reached: row.target === null ? null : reaches(measured.median, row.target),
      rates: scenario.moved === '' || row.unit !== 'ratio' ? null : ratesOf(row, processes),
    }
  })
}

function reaches(value: number, target: NonNullable<Row['target']>): boolean {
  return target.bound === 'at least' ? value >= target.value : value <= target.value
}

function ratesOf(row: Row, processes: readonly Samples[]): number[] {
  return [row.subject, row.against].map(
    (contender) => 1e9 / median(processes.flatMap((samples) => samples[contender] ?? [])),
  )
}

const SUFFIX: { readonly [unit in Unit]: string } = {
  ratio: '×',
  bytes: ' B',
  MiB: ' MiB',
  ms: ' ms',
  'GB/s': ' GB/s',
  's/GB': ' s/GB',
  count: '',
}

function figure(value: number, unit: Unit): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits) + SUFFIX[unit]
}

function rate(perSecond: number): string {
  return perSecond >= 1e6 ? `${(perSecond / 1e6).toFixed(1)} M` : `${(perSecond / 1e3).toFixed(1)} k`
}

function cells(line: Line): string[] {
  const { measured, unit, target } = line
  return [
    line.subject,
    line.against,
    target === null ? '' : `${target.bound === 'at least' ? '≥' : '≤'} ${target.value}${SUFFIX[unit]}`,
    figure(measured.median, unit),
    `${figure(measured.q1, unit)} – ${figure(measured.q3, unit)}`,
    line.reached === null ? '' : line.reached ? 'yes' : '**no**',
    line.rates === null ? '' : line.rates.map(rate).join(' / '),
  ]
}

const HEAD = ['contender', 'against', 'to reach', 'median', 'quartiles', 'reached', 'per second']

/** A table for the terminal. */
export function textOf(scenario: Table, lines: readonly Line[]): string {
  const rows = [HEAD, ...lines.map((line) => cells(line).map((cell) => cell.replaceAll('**', '')))]
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const body = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return `${scenario.name}: ${scenario.title}\n${body.map((line) => `  ${line}`).join('\n')}\n`
}

/** A table, and what was measured for it. */
export interface Measured {
  readonly scenario: Table
  readonly lines: readonly Line[]
}

/** docs/benchmarks.md. */
export function markdownOf(
  measured: readonly Measured[],
  where: Environment,
  method: { readonly processes: number; readonly rounds: number; readonly roundMs: number },
): string {
  const versions = Object.entries(where.versions).map(([name, version]) => `${name} ${version}`)
  const out = [
    '# Benchmarks',
    '',
    '<!-- Written by `npm run bench`. Do not edit: change bench/ and run it again. -->',
    '',
    'Run them yourself: `npm ci && npm run bench` (about five minutes; `-- --short` only checks that they',
    'work, `-- --only one-to-one` runs one). Every line is a ratio of two contenders that took turns in the same',
    `process (${method.rounds} rounds of about ${method.roundMs} ms in each of ${method.processes} fresh processes), because absolute`,
    'figures drift with the machine. What was moved is checked: number, order and content of all deliveries.',
    '`odradek` publishes with `tryPublish` until there is no room and then awaits a `publish`; its readers have',
    'an id, so they are at-least-once and nothing is dropped. Variants say what they do differently.',
    'Peers are used as their own documentation does it.',
    '',
    `- Machine: ${where.machine}`,
    `- Node ${where.node} (V8 ${where.v8})`,
    `- ${versions.join(', ')}`,
    '',
    outcomeOf(measured),
    ...tablesOf(measured),
  ]
  return `${out.join('\n')}\n`
}

/** How many of the figures aimed at were reached, and which were not: a line of Markdown. */
export function outcomeOf(measured: readonly Measured[]): string {
  const all = measured.flatMap(({ lines }) => lines)
  const missed = all.filter((line) => line.reached === false)
  const aimed = all.filter((line) => line.reached !== null)
  if (missed.length === 0) return `All ${aimed.length} figures aimed at were reached.`
  const names = missed.map((line) => `${line.scenario} (${line.subject} against ${line.against})`)
  return `${aimed.length - missed.length} of ${aimed.length} figures aimed at were reached. Missed: ${names.join('; ')}.`
}

/** The tables as lines of Markdown, each under its heading. */
export function tablesOf(measured: readonly Measured[]): string[] {
  const out: string[] = []
  for (const { scenario, lines } of measured) {
    const head =
      scenario.moved === '' ? HEAD.slice(0, -1) : [...HEAD.slice(0, -1), `${scenario.moved} per second`]
    out.push('', `## ${scenario.name}`, '', `${scenario.title}.`, '')
    out.push(`| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`)
    for (const line of lines) out.push(`| ${cells(line).slice(0, head.length).join(' | ')} |`)
  }
  return out
}
