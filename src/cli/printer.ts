/**
 * Writes lines in pieces, and waits until they are taken: a slow reader must not make the command hold all of its output.
 * A reader that went away is a BrokenPipe, which ends the command without a word.
 */
import { Buffer } from 'node:buffer'
import { OdradekError } from '../model/errors.ts'
import type { Output } from './command.ts'

const PIECE_CHARS = 16 * 1024

export class BrokenPipe extends Error {
  override readonly name = 'BrokenPipe'
}

/** What a terminal takes for them: on, off. */
const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const
export type Style = keyof typeof STYLES

/** These lines, and nothing after them. */
export async function say(output: Output, ...lines: readonly string[]): Promise<void> {
  const printer = new Printer(output)
  await printer.lines(lines)
  await printer.flush()
}

function failed(error: NodeJS.ErrnoException): Error {
  if (error.code === 'EPIPE') return new BrokenPipe()
  return new OdradekError('STORAGE_ERROR', `the output cannot be written: ${error.message}`, { cause: error })
}

export class Printer {
  readonly #output: Output
  readonly #colors: boolean
  #text = ''
  /** What comes before the text. */
  #pieces: Uint8Array[] = []
  #pieceBytes = 0

  constructor(output: Output) {
    this.#output = output
    this.#colors = output.isTTY === true && output.hasColors?.() === true
  }

  /** The text, in colour where the output is a terminal that wants it. */
  styled(style: Style, text: string): string {
    const [on, off] = STYLES[style]
    return this.#colors ? `\x1b[${on}m${text}\x1b[${off}m` : text
  }

  async line(text: string = ''): Promise<void> {
    this.#text += `${text}\n`
    if (this.#text.length >= PIECE_CHARS) await this.flush()
  }

  /** As they are, after what was written before. */
  async bytes(bytes: Uint8Array): Promise<void> {
    this.#pieces.push(...(this.#text === '' ? [] : [Buffer.from(this.#text)]), bytes)
    this.#text = ''
    this.#pieceBytes += bytes.length
    if (this.#pieceBytes >= PIECE_CHARS) await this.flush()
  }

  async lines(texts: readonly string[]): Promise<void> {
    for (const text of texts) await this.line(text)
  }

  /** Resolves when everything is taken. */
  flush(): Promise<void> {
    const text =
      this.#pieces.length === 0 ? this.#text : Buffer.concat([...this.#pieces, Buffer.from(this.#text)])
    this.#text = ''
    this.#pieces = []
    this.#pieceBytes = 0
    if (text.length === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#output.write(text, (error) => {
        if (error == null) resolve()
        else reject(failed(error))
      })
    })
  }
}
