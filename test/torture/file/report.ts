/** Adds up verdicts, and says them in a few lines. */
import type { Verdict } from './judge.ts'

/** Faults shown of each verdict; more of them teach no more. */
const SHOWN = 5

export class Report {
  trials = 0
  acked = 0
  lost = 0
  duplicated = 0
  corrupt = 0
  /** Verdicts with a fault. */
  failures = 0
  readonly texts: string[] = []
  readonly #notes = new Map<string, number>()
  readonly #recoveriesMs: number[] = []
  /** How often each step was the last. */
  readonly #strikes: Map<string, number>
  readonly #nameless = new Set<string>()

  constructor(steps: readonly string[] = []) {
    this.#strikes = new Map(steps.map((step) => [step, 0]))
  }

  /** `again`: what to say to see it again. */
  add(verdict: Verdict, again: string): void {
    this.acked += verdict.acked
    this.lost += verdict.lost
    this.duplicated += verdict.duplicated
    this.corrupt += verdict.corrupt
    if (verdict.faults.length === 0) return
    this.failures++
    const shown = verdict.faults.slice(0, SHOWN).join('\n    ')
    this.texts.push(`${again}: ${verdict.faults.length} faults\n    ${shown}`)
  }

  recovered(ms: number): void {
    this.#recoveriesMs.push(ms)
  }

  /** Counts an outcome of which there are several good ones. */
  note(outcome: string): void {
    this.#notes.set(outcome, (this.#notes.get(outcome) ?? 0) + 1)
  }

  struck(text: string): void {
    const step = text.replace(/ \(\w+\)$/, '')
    this.#strikes.set(step, (this.#strikes.get(step) ?? 0) + 1)
  }

  /** A process came to a step, and went on. */
  passed(step: string): void {
    if (!this.#strikes.has(step)) this.#nameless.add(step)
  }

  get untouched(): string[] {
    return [...this.#strikes].filter(([, count]) => count === 0).map(([step]) => step)
  }

  get nameless(): readonly string[] {
    return [...this.#nameless]
  }

  get strikes(): ReadonlyMap<string, number> {
    return this.#strikes
  }

  /** No loss in n trials: with 95 % confidence it is rarer than 3 in n (rule of three). */
  lines(title: string): string[] {
    const { trials, acked, lost, duplicated, corrupt } = this
    const ms = this.#recoveriesMs.sort((a, b) => a - b)
    const at = (share: number): string => (ms[Math.floor((ms.length - 1) * share)] ?? 0).toFixed(1)
    const lines = [
      `${title}: ${trials} trials, ${acked} acked, ${lost} lost, ${duplicated} duplicated, ${corrupt} corrupt served`,
    ]
    if (lost === 0 && trials > 0)
      lines.push(`  loss per trial: below ${(3 / trials).toExponential(1)} with 95 % confidence`)
    if (this.#notes.size > 0)
      lines.push(`  ${[...this.#notes].map(([outcome, count]) => `${outcome}: ${count}`).join(', ')}`)
    if (ms.length > 0)
      lines.push(`  ${ms.length} recoveries: median ${at(0.5)} ms, 99 % ${at(0.99)} ms, longest ${at(1)} ms`)
    return [...lines, ...this.texts.map((text) => `  FAULT ${text}`)]
  }
}
