/** `odradek verify`: reads all of a data directory, and tells what is wrong with it. */
import type { Finding } from '../../log/file/segment-check.ts'
import { type Progress, type Verified, verifyDirectory } from '../../log/file/verify.ts'
import { argumentsOf } from '../arguments.ts'
import { type Command, FOUND, type Io, OK, type Output } from '../command.ts'
import { DIRECTORY, findDirectory, ownerText } from '../data-directory.ts'
import { Printer, say } from '../printer.ts'
import { bytesText, plural } from '../table.ts'

const HELP = `odradek verify: reads all of a data directory, and tells what is wrong with it

Usage
  odradek verify [options] <directory>

Options
  --json   findings and totals as one JSON document
  --help   this page

It reads every byte that counts: the checkpoint against its CRC, every group of the journal after it and every
batch in it, every batch of every segment (CRC, offsets, leader epochs), the CRC over a whole segment, footers,
and the indexes of sealed segments. The directory is only read.

Findings are lines on standard output:
  <file>:<byte>: <what>                damage: what was stored is not there, or not as it was
  <file>:<byte>: harmless: <what>      a cut-off group at the end of the journal, or an index that is of no use:
                                       what a crash leaves; opening deals with it, and loses nothing

In a file, what follows its first damage is not looked at. Without a readable checkpoint the journal and active
segments cannot be checked; sealed ones are, by their footers. Beside a broker only damage that is found
twice counts.

JSON
  directory, sound, findings [{ file, position, what, harmless }],
  checked { logs, segments, sizeBytes, groups }
  These names stay; more may come.

Exit codes: 0 sound, harmless findings or none; 1 damage; 2 wrong usage, not a data directory, or not to be read.`

const OPTIONS = { json: { type: 'boolean' } } as const
/** Until then it is not worth a line. */
const PROGRESS_AFTER_MS = 1_000
const PROGRESS_EVERY_MS = 100

export const verifyCommand: Command = {
  help: HELP,
  run: verify,
}

async function verify(args: readonly string[], io: Io): Promise<number> {
  const { words, options } = argumentsOf(args, OPTIONS, DIRECTORY)
  const [path = ''] = words
  const { owner, ...directory } = await findDirectory(path)
  const printer = new Printer(io.stdout)
  if (owner !== undefined) {
    await say(io.stderr, `${path} is open: ${ownerText(owner)}. Damage that is found twice is told of.`)
  }
  const line = new ProgressLine(io)
  const findings: Finding[] = []
  const walk = verifyDirectory({ ...directory, progress: (progress) => line.show(progress) })
  let step = await walk.next()
  for (; step.done !== true; step = await walk.next()) {
    findings.push(step.value)
    if (options.json === true) continue
    line.clear()
    await printer.line(textOf(step.value, printer))
    await printer.flush()
  }
  line.clear()
  const sound = findings.every(({ harmless }) => harmless)
  if (options.json === true) {
    await printer.line(JSON.stringify({ directory: path, sound, findings, checked: step.value }, null, 2))
  } else await printer.line(summaryOf(findings, step.value))
  await printer.flush()
  return sound ? OK : FOUND
}

function textOf({ file, position, what, harmless }: Finding, printer: Printer): string {
  return `${file}:${position}: ${harmless ? 'harmless: ' : ''}${harmless ? what : printer.styled('red', what)}`
}

function summaryOf(findings: readonly Finding[], { logs, segments, sizeBytes, groups }: Verified): string {
  const damaged = findings.filter(({ harmless }) => !harmless).length
  const verdict = damaged === 0 ? 'sound' : plural(damaged, 'finding')
  const parts = [plural(logs, 'log'), plural(segments, 'segment'), bytesText(sizeBytes)]
  return `${verdict}: ${parts.join(', ')}, ${plural(groups, 'group')} in the journal`
}

/** One line on a terminal that is written over, once it takes a while. */
class ProgressLine {
  readonly #output: Output
  readonly #monotonic: () => number
  #nextMs: number
  #shown = false

  constructor({ stderr, monotonic }: Io) {
    this.#output = stderr
    this.#monotonic = monotonic
    this.#nextMs = monotonic() + PROGRESS_AFTER_MS
  }

  show({ file, doneBytes, totalBytes }: Progress): void {
    if (this.#output.isTTY !== true || this.#monotonic() < this.#nextMs) return
    const percent = Math.floor((doneBytes / Math.max(totalBytes, 1)) * 100)
    this.#write(`\r\x1b[K${percent} % of ${bytesText(totalBytes)}: ${file}`)
    this.#nextMs = this.#monotonic() + PROGRESS_EVERY_MS
    this.#shown = true
  }

  clear(): void {
    if (this.#shown) this.#write('\r\x1b[K')
    this.#shown = false
  }

  /** Progress that cannot be shown is no failure. */
  #write(text: string): void {
    this.#output.write(text, () => {})
  }
}
