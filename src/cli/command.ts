/** What a command is, and what it is given of the process: nothing in a command names the process itself. */

/** A stream to write to: the process's, or a test's. */
export interface Output {
  write(text: string | Uint8Array, done: (error?: Error | null) => void): unknown
  readonly isTTY?: boolean
  /** Only terminals have it; it heeds NO_COLOR, FORCE_COLOR and TERM. */
  hasColors?(): boolean
}

export interface Io {
  /** Data, and nothing else. */
  readonly stdout: Output
  /** Everything that is said to a person beside the data. */
  readonly stderr: Output
  /** What is piped into the command; ends early when the signal aborts. */
  readonly stdin: (signal: AbortSignal) => AsyncIterable<Uint8Array>
  readonly env: Readonly<Partial<Record<string, string>>>
  /** Milliseconds, of a clock that is never put back. */
  readonly monotonic: () => number
  /**
   * From now on the first SIGINT or SIGTERM aborts this, for a command that has something to bring to an end; the next
   * one ends the process. Without it the first one does.
   */
  readonly interrupted: () => AbortSignal
}

export interface Command {
  readonly help: string
  /** The exit code where it meets an OdradekError; FAILED if it does not say. */
  readonly failure?: number
  /** Commands of its own: the first word of its arguments. */
  readonly commands?: readonly NamedCommand[]
  /** Answers the exit code. @throws UsageError */
  run(args: readonly string[], io: Io): Promise<number>
}

/** A command among others. */
export interface NamedCommand extends Command {
  readonly name: string
  /** One line. */
  readonly summary: string
}

/** The command line is not one that the command takes. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const OK = 0
/** `verify` found damage. */
export const FOUND = 1
/** A broker cannot be reached, or has refused what it was asked for. */
export const REFUSED = 1
/** The command line is wrong, or the directory is none or cannot be read. */
export const FAILED = 2
/** Who read the output went away: what a shell answers for a process that SIGPIPE ended. */
export const BROKEN_PIPE = 141
