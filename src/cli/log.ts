/**
 * What a server has to say while it runs, to standard error: text for a person at a terminal, a JSON object a line for
 * everything else. Time is that of the process; an error keeps its code, its message and its stack.
 */
import { messageOf, OdradekError } from '../model/errors.ts'
import type { Logger } from '../model/views.ts'
import type { Output } from './command.ts'

export type LogFormat = 'text' | 'json'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LEVELS)[number]

export function isLogLevel(text: unknown): text is LogLevel {
  return (LEVELS as readonly unknown[]).includes(text)
}

export interface LogOptions {
  readonly format: LogFormat
  /** What is below is not said. */
  readonly level: LogLevel
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Where nobody takes it any more, it is gone: a log must not end what it tells of. */
export function logTo(output: Output, { format, level, now }: LogOptions): Logger {
  const from = LEVELS.indexOf(level)
  const at =
    (name: LogLevel) =>
    (details: object, message: string): void => {
      if (LEVELS.indexOf(name) < from) return
      const time = new Date(now()).toISOString()
      const line =
        format === 'json' ? jsonLine(time, name, details, message) : textLine(time, name, details, message)
      output.write(`${line}\n`, () => {})
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function jsonLine(time: string, level: LogLevel, details: object, message: string): string {
  const { error, ...rest } = details as { readonly error?: unknown }
  return JSON.stringify({
    time,
    level,
    message,
    ...rest,
    ...(error === undefined ? {} : { error: described(error) }),
  })
}

function described(error: unknown): object {
  const { stack } = (error ?? {}) as { readonly stack?: string }
  const code = error instanceof OdradekError ? { code: error.code } : {}
  return { ...code, message: messageOf(error), ...(stack === undefined ? {} : { stack }) }
}

function textLine(time: string, level: LogLevel, details: object, message: string): string {
  const { error, ...rest } = details as { readonly error?: unknown }
  const said = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  // The message of an error is part of the message, as a rule; what led there is not.
  const stack = level === 'error' && error instanceof Error ? `\n${error.stack ?? ''}` : ''
  return [time, level.toUpperCase().padEnd(5), message, ...said].join(' ') + stack
}
