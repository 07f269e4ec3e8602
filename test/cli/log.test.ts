/** Lines of a server's log: for people, and for programs. */
import { describe, expect, it } from 'vitest'
import { isLogLevel, type LogFormat, type LogLevel, logTo } from '../../src/cli/log.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { Captured } from './kit.ts'

function logged(
  format: LogFormat,
  level: LogLevel,
  write: (logger: ReturnType<typeof logTo>) => void,
): string {
  const output = new Captured()
  write(logTo(output, { format, level, now: () => Date.UTC(2026, 0, 1) }))
  return output.text
}

describe('a log', () => {
  it('is text, with what belongs to a message behind it', () => {
    const text = logged('text', 'debug', (logger) => {
      logger.debug({}, 'a')
      logger.warn({ client: '::1', count: 2 }, 'b')
    })
    expect(text).toBe(
      '2026-01-01T00:00:00.000Z DEBUG a\n2026-01-01T00:00:00.000Z WARN  b client="::1" count=2\n',
    )
  })

  it('is a JSON object a line, in which an error keeps its code, its message and its stack', () => {
    const text = logged('json', 'info', (logger) => {
      logger.info({ a: 1 }, 'm')
      logger.error({ error: new OdradekError('FULL', 'no room') }, 'n')
      logger.error({ error: 'thrown' }, 'o')
    })
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines[0]).toEqual({ time: '2026-01-01T00:00:00.000Z', level: 'info', message: 'm', a: 1 })
    expect(lines[1].error).toMatchObject({ code: 'FULL', message: 'no room' })
    expect(lines[1].error.stack).toContain('no room')
    expect(lines[2].error).toEqual({ message: 'thrown' })
  })

  it('has the stack of an error in text too, where that is one', () => {
    const write = (logger: ReturnType<typeof logTo>): void => {
      logger.error({ error: new Error('deep') }, 'x')
      logger.warn({ error: new Error('shallow') }, 'y')
    }
    const text = logged('text', 'info', write)
    expect(text).toMatch(/ERROR x\nError: deep\n +at /)
    expect(text).not.toContain('shallow')
  })

  it('leaves out what is below its level', () => {
    const write = (logger: ReturnType<typeof logTo>): void => {
      for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level]({}, level)
    }
    expect(logged('text', 'warn', write).match(/warn|error|info|debug/g)).toEqual(['warn', 'error'])
    expect(['debug', 'loud', undefined].map(isLogLevel)).toEqual([true, false, false])
  })
})
