/** `odradek inspect`: what a data directory holds, and what opening it would do. */

import { type DataDirectory, readDirectory } from '../../log/file/inspect.ts'
import {
  type BatchReport,
  type BatchSelection,
  type DamageReport,
  listBatches,
  logsNamed,
} from '../../log/file/inspect-batches.ts'
import { argumentsOf, offsetOf } from '../arguments.ts'
import { type Command, type Io, OK, UsageError } from '../command.ts'
import { DIRECTORY, type Found, findDirectory } from '../data-directory.ts'
import { Printer } from '../printer.ts'
import { batchLines, inspectionLines } from './inspect-text.ts'

const HELP = `odradek inspect: what a data directory holds, and what opening it would do

Usage
  odradek inspect [options] <directory>

Options
  --batches <topic>[/<partition>]   list the batches of a topic too: name or id of it, all partitions or one
  --from <offset>                   only batches with offsets from this one on
  --to <offset>                     only batches with offsets below this one
  --json                            the report as one JSON document
  --help                            this page

It shows the owner of the directory, the checkpoint, the journal after it and how it ends, each log with its
segments, and what recovery would do: what it would replay, cut, copy aside and remove, or why it would refuse.
The directory is only read. While a broker has it open, the report is of one of the last moments, and opening means:
if that broker were killed now.

Offsets of a log: start is the first one that is kept; high, the end of what readers see, is end once the
directory is opened, since all that recovery finds is committed. What is below "stored" is in segments, the rest in
the journal.

Index of a segment: ok; partial, it covers a beginning; missing or unusable, it is made again when it is needed.
An active segment has an index now and then, and no footer.

JSON
  directory, owner { pid, host, since } or null, format, durability, clean
  checkpoint { sizeBytes, sequence, logs, deleting, meta } or null
  journal { files [{ file, sizeBytes }], groups, first, last, sizeBytes, entries { batch, meta, start, delete },
    batchBytes, tail { kind: clean | torn | corrupt, file, position, sizeBytes | why } } or null
  logs [{ topic, topicId, partition, directory, start, high, end, epoch, checkpointEnd, segments [{ file, base, next,
    sizeBytes, fileBytes, newest, sealed, compacted, footer: ok | damaged | null,
    index: ok | partial | missing | unusable }] }]
  recovery { outcome: nothing | recover | refuse, refusals [{ code, message, file, position, salvageable }],
    aside [{ file, position, sizeBytes, copy }], replay { groups, batches, batchBytes },
    cut [{ file, fromBytes, toBytes }], remove [file], removeDirectories [directory],
    newEpochs: damage | unclean | null }
  batches, with --batches: [{ topic, topicId, partition, file, position, sizeBytes, base, last, count, newest,
    leaderEpoch, producer { id, epoch, sequence } or null, transactional, control: commit | abort | other | null,
    compression, inProcess, crc: ok | wrong }], or { topic, topicId, partition, file, position, damage }
  Sizes are bytes, next is the offset after the last, times are ISO 8601. These names stay; more may come.

Exit codes: 0 shown, whatever the state of the directory; 2 wrong usage, not a data directory, or not to be read.`

const OPTIONS = {
  batches: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  json: { type: 'boolean' },
} as const

export const inspectCommand: Command = {
  help: HELP,
  run: inspect,
}

async function inspect(args: readonly string[], io: Io): Promise<number> {
  const { words, options } = argumentsOf(args, OPTIONS, DIRECTORY)
  const [path = ''] = words
  const selection = selectionOf(options)
  const found = await findDirectory(path)
  const directory = await readDirectory(found)
  if (selection !== undefined && logsNamed(directory, selection).length === 0) {
    throw new UsageError(`there is no log of "${options.batches}"${knownTopics(directory)}`)
  }
  const printer = new Printer(io.stdout)
  if (options.json === true) await printJson(printer, found, directory, selection)
  else {
    await printer.lines(inspectionLines(directory.report, path, found.owner, printer))
    if (selection !== undefined) {
      await printer.lines(['', printer.styled('bold', `Batches of ${options.batches}`)])
      for await (const line of batchLines(listBatches(directory, selection), printer))
        await printer.line(line)
    }
  }
  await printer.flush()
  return OK
}

function selectionOf(
  options: Readonly<Record<string, string | boolean | undefined>>,
): BatchSelection | undefined {
  const from = offsetOf('from', options.from)
  const to = offsetOf('to', options.to)
  if (options.batches === undefined) {
    if (from !== undefined || to !== undefined) throw new UsageError('--from and --to go with --batches')
    return undefined
  }
  const [, topic, partition] = /^([^/]+)(?:\/(\d{1,9}))?$/.exec(String(options.batches)) ?? []
  if (topic === undefined) {
    throw new UsageError(
      `--batches is a topic, or one of its partitions such as orders/0; not "${options.batches}"`,
    )
  }
  return {
    topic,
    ...(partition === undefined ? {} : { partition: Number(partition) }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  }
}

function knownTopics({ report }: DataDirectory): string {
  const names = [...new Set(report.logs.map(({ topic, topicId }) => topic ?? topicId))]
  return names.length === 0 ? '' : `; there are ${names.join(', ')}`
}

/** One document, written as it comes: a log may have more batches than memory has room for. */
async function printJson(
  printer: Printer,
  { path, owner }: Found,
  directory: DataDirectory,
  selection: BatchSelection | undefined,
): Promise<void> {
  const report = {
    directory: path,
    owner: owner === undefined ? null : { pid: owner.pid, host: owner.host, since: new Date(owner.sinceMs) },
    ...directory.report,
  }
  const text = JSON.stringify(report, null, 2)
  if (selection === undefined) return printer.line(text)
  await printer.line(`${text.slice(0, -'\n}'.length)},`)
  await printer.line('  "batches": [')
  let last: BatchReport | DamageReport | undefined
  for await (const batch of listBatches(directory, selection)) {
    if (last !== undefined) await printer.line(`    ${JSON.stringify(last)},`)
    last = batch
  }
  if (last !== undefined) await printer.line(`    ${JSON.stringify(last)}`)
  await printer.lines(['  ]', '}'])
}
