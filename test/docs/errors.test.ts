/** docs/errors.md and the code say the same, both ways. */
import { describe, expect, it } from 'vitest'
import { ERROR_CODES, type ErrorCode, OdradekError } from '../../src/model/errors.ts'
import { rowsOf } from './markdown.ts'

const rows = rowsOf('docs/errors.md').map(([code = '', retriable, when]) => ({
  code: code.replaceAll('`', ''),
  retriable,
  when,
}))

describe('docs/errors.md', () => {
  it('lists every code once, in order, and no other', () => {
    expect(rows.map(({ code }) => code)).toEqual([...ERROR_CODES])
  })

  it.each(rows)('says whether $code is retriable, and when it comes', ({ code, retriable, when }) => {
    expect(retriable).toBe(new OdradekError(code as ErrorCode, '').retriable ? 'yes' : 'no')
    expect(when).not.toBe('')
  })
})
