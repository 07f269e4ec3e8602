/**
 * What the parts of one broker share, and the ports through which the core reaches what lies above it:
 * committed offsets (the coordinator's) and topics by name (for dead letters and a handler's publishes).
 */
import type { Engine } from '../log/contract.ts'
import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/views.ts'
import type { Cursor } from './cursor.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { DueQueue } from './due-queue.ts'
import type { Events } from './events.ts'
import type { Topic } from './topic.ts'

export interface CoreContext {
  readonly engine: Pick<Engine, 'encodes' | 'refusal' | 'takesAtOnce'>
  readonly clock: Clock
  readonly due: DueQueue
  readonly dispatcher: Dispatcher
  readonly events: Events
  readonly logger: Logger
  readonly random: () => number
  readonly commits: CommitPort
  readonly topics: TopicPort
}

/** Where cursors report progress. */
export interface CommitPort {
  /** Whether a commit outlives the process, so that marks must be stored before a hand-out. */
  readonly durable: boolean
  /** Progress was made; it will be stored with others within `commitFlushMs`. */
  changed(cursor: Cursor): void
  /** Stores their state now, in one change; resolves when it is safe. */
  store(cursors: readonly Cursor[]): Promise<void>
}

export interface TopicPort {
  get(name: string): Topic | undefined
  /** The topic for dead letters of that name, made when missing. */
  deadLetters(name: string): Promise<Topic>
}
