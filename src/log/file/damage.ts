/** Damage on the disk: an error that says for programs, too, where it was met. */
import { OdradekError } from '../../model/errors.ts'

/** What is wrong, and at which byte of the file it was noticed. */
export interface Damage {
  readonly position: number
  readonly what: string
}

export class DamagedFile extends OdradekError implements Damage {
  readonly file: string
  readonly position: number
  readonly what: string

  constructor(
    file: string,
    { position, what }: Damage,
    message: string = `${file} is damaged at byte ${position}: ${what}; restore it from a copy, or open with ` +
      '`salvage: true` to go on without what is damaged',
    options?: { cause?: unknown },
  ) {
    super('CORRUPT_LOG', message, options)
    this.file = file
    this.position = position
    this.what = what
  }
}
