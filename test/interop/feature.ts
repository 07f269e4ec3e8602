/** A row of the matrix: what a client is tried with. */
import type { Trial, TrialOptions } from './trial.ts'

export interface Feature {
  readonly name: string
  readonly group: 'produce' | 'consume' | 'groups' | 'transactions' | 'admin' | 'lasting' | 'security'
  /** Of its server. */
  readonly server?: TrialOptions
  /** What this machine would have to have; undefined where it has. */
  readonly needs?: () => string | undefined
  readonly run: (trial: Trial) => Promise<void>
}
