/** The logger of a broker: the one given, or the console for what somebody should see. */
import type { Logger } from '../model/views.ts'
import { invalid } from './settings.ts'

type Level = keyof Logger

const LEVELS: readonly Level[] = ['debug', 'info', 'warn', 'error']

const CONSOLE: Logger = {
  debug: () => {},
  info: () => {},
  // biome-ignore lint/suspicious/noConsole: the default logger is the console
  warn: (details, message) => console.warn(message, details),
  // biome-ignore lint/suspicious/noConsole: the default logger is the console
  error: (details, message) => console.error(message, details),
}

/**
 * A logger is somebody else's code: what it throws must not reach the middle of a settle.
 * @throws OdradekError INVALID_ARGUMENT for one that lacks a method
 */
export function loggerOf(given: Logger | undefined): Logger {
  const logger = given ?? CONSOLE
  for (const level of LEVELS) {
    if (typeof logger[level] === 'function') continue
    throw invalid(`logger has the methods ${LEVELS.join(', ')}; ${level} is missing`)
  }
  const call =
    (level: Level) =>
    (details: object, message: string): void => {
      try {
        logger[level](details, message)
      } catch {
        // There is nobody left to tell.
      }
    }
  return { debug: call('debug'), info: call('info'), warn: call('warn'), error: call('error') }
}
