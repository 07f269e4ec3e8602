/**
 * Metrics as Prometheus reads them (text format 0.0.4): families, one after the other, each with its samples. Names are
 * ours; values of labels are anybody's, and escaped. At most so many samples are written: what is beyond is counted.
 *
 *   # HELP name what it is
 *   # TYPE name gauge
 *   name{label="value"} 1
 */
export type MetricType = 'gauge' | 'counter' | 'histogram'
export type Labels = Readonly<Record<string, string | number>>

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
const MAX_SAMPLES = 200_000

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

export class Exposition {
  readonly #lines: string[] = []
  readonly #maxSamples: number
  #samples = 0
  /** Samples that were left off. */
  leftOff = 0

  constructor(maxSamples: number = MAX_SAMPLES) {
    this.#maxSamples = maxSamples
  }

  family(name: string, type: MetricType, help: string, samples: Iterable<readonly [Labels, number]>): void {
    this.header(name, type, help)
    for (const [labels, value] of samples) this.sample(name, labels, value)
  }

  header(name: string, type: MetricType, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
  }

  sample(name: string, labels: Labels, value: number): void {
    if (this.#samples === this.#maxSamples) {
      this.leftOff++
      return
    }
    this.#samples++
    const written = Object.entries(labels).map(([label, text]) => `${label}="${escaped(String(text))}"`)
    const set = written.length === 0 ? '' : `{${written.join()}}`
    this.#lines.push(`${name}${set} ${value === Number.POSITIVE_INFINITY ? '+Inf' : value}`)
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`
  }
}

function escaped(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => ESCAPES[character] as string)
}
