/** The report of `odradek inspect` for people. */

import type {
  Inspection,
  JournalReport,
  LogReport,
  RecoveryReport,
  SegmentReport,
} from '../../log/file/inspect.ts'
import type { BatchReport, DamageReport } from '../../log/file/inspect-batches.ts'
import type { LockOwner } from '../../log/file/lock-node.ts'
import { ownerText } from '../data-directory.ts'
import type { Printer } from '../printer.ts'
import { bytesText, plural, table } from '../table.ts'

/** How many batches share the widths of their columns. */
const ROWS_AT_ONCE = 500

export function inspectionLines(
  report: Inspection,
  path: string,
  owner: LockOwner | undefined,
  printer: Printer,
): string[] {
  const { checkpoint, journal, logs, recovery } = report
  const facts: [string, string][] = [
    ['directory', path],
    ['owner', owner === undefined ? 'none' : ownerText(owner)],
    ['format', report.format === null ? 'not known' : String(report.format)],
    ['durability', report.durability ?? 'not known'],
    ['closed', closedText(report, owner)],
    ['checkpoint', checkpoint === null ? 'none that can be read' : checkpointText(checkpoint)],
    ...journalFacts(journal),
  ]
  const lines = table(facts.map(([name, value]) => [printer.styled('bold', name), value]))
  if (owner !== undefined) {
    lines.push(
      '',
      printer.styled('yellow', 'A broker has the directory open: this is of one of the last moments.'),
    )
  }
  for (const log of logs) lines.push('', ...logLines(log, printer))
  if (logs.length === 0) lines.push('', 'No logs.')
  return [...lines, '', ...recoveryLines(recovery, owner, printer)]
}

function closedText({ clean }: Inspection, owner: LockOwner | undefined): string {
  if (clean === null) return 'not known'
  if (clean) return 'yes'
  return owner === undefined ? 'no: the process ended without it' : 'no: it is open'
}

function checkpointText({
  sequence,
  logs,
  meta,
  deleting,
  sizeBytes,
}: NonNullable<Inspection['checkpoint']>): string {
  const parts = [plural(logs, 'log'), plural(meta, 'entry', 'entries')]
  if (deleting > 0) parts.push(`${plural(deleting, 'log')} to be removed`)
  return `up to group ${sequence}: ${parts.join(', ')}; ${bytesText(sizeBytes)}`
}

function journalFacts(journal: JournalReport | null): [string, string][] {
  if (journal === null) return [['journal', 'cannot be read without a checkpoint']]
  const { groups, first, last, sizeBytes, entries, batchBytes, files, tail } = journal
  const kinds = [
    `${plural(entries.batch, 'batch', 'batches')} (${bytesText(batchBytes)})`,
    `${entries.meta} meta`,
    `${entries.start} start`,
    `${entries.delete} delete`,
  ]
  const range = first === last ? `group ${first}` : `groups ${first} to ${last}`
  return [
    [
      'journal',
      groups === 0 ? 'no groups after it' : `${range}, ${bytesText(sizeBytes)}: ${kinds.join(', ')}`,
    ],
    ['', `ends ${tailText(tail)}`],
    ['', files.map((each) => `${each.file} has ${bytesText(each.sizeBytes)}`).join(', ') || 'no files'],
  ]
}

function tailText(tail: JournalReport['tail']): string {
  if (tail.kind === 'clean') return 'cleanly'
  const where = `at ${tail.file}:${tail.position}`
  return tail.kind === 'torn'
    ? `torn ${where}: ${bytesText(tail.sizeBytes)} of a group that was being written`
    : `in damage ${where}: ${tail.why}`
}

function logLines(log: LogReport, printer: Printer): string[] {
  const { topic, topicId, partition, start, high, end, epoch, checkpointEnd, segments, directory } = log
  const name = printer.styled('bold', `${topic ?? topicId}/${partition}`)
  const marks =
    end === null
      ? 'no checkpoint tells of its offsets'
      : `start ${start}, high ${high}, end ${end}, stored ${checkpointEnd}, epoch ${epoch}`
  const lines = [`${name}  ${marks}`, `  ${printer.styled('dim', `${directory}, topic id ${topicId}`)}`]
  if (segments.length === 0) return [...lines, '  no segments']
  const head = ['segment', 'base', 'next', 'bytes', 'newest', 'state']
  const rows = segments.map((segment) => [
    segment.file.slice(directory.length + 1),
    String(segment.base),
    segment.next === null ? '?' : String(segment.next),
    String(segment.sizeBytes),
    segment.newest ?? '-',
    stateOf(segment),
  ])
  return [...lines, ...table([head, ...rows], [1, 2, 3]).map((line) => `  ${line}`)]
}

function stateOf({ fileBytes, sealed, footer, index, compacted }: SegmentReport): string {
  if (fileBytes === null) return 'missing'
  const parts = [sealed ? 'sealed' : 'active']
  if (compacted) parts.push('compacted')
  if (footer !== null) parts.push(`footer ${footer}`)
  return [...parts, `index ${index}`].join(', ')
}

function recoveryLines(recovery: RecoveryReport, owner: LockOwner | undefined, printer: Printer): string[] {
  const { outcome, refusals, aside, replay, cut, remove, removeDirectories, newEpochs } = recovery
  const when = owner === undefined ? 'Opening it' : 'If that broker were killed now, opening it'
  if (outcome === 'nothing') return [printer.styled('green', `${when} would find nothing to recover.`)]
  const steps: string[] = []
  for (const { file, position, sizeBytes, copy } of aside) {
    steps.push(
      `copy ${bytesText(sizeBytes)} of ${file} from byte ${position} on to ${copy}, and leave them out`,
    )
  }
  for (const [directory, files] of byDirectory(remove)) {
    const many = plural(files.length, 'file')
    steps.push(
      `remove ${many} in ${directory} that the checkpoint does not know: nothing that counts is in them alone`,
    )
  }
  for (const directory of removeDirectories) steps.push(`remove ${directory}, whose log was deleted`)
  for (const { file, fromBytes, toBytes } of cut)
    steps.push(`cut ${file} from ${bytesText(fromBytes)} to ${toBytes}`)
  if (replay.groups > 0) {
    const { groups, batches, batchBytes } = replay
    steps.push(
      `replay ${plural(groups, 'group')} with ${plural(batches, 'batch', 'batches')} of ${bytesText(batchBytes)}`,
    )
  }
  if (newEpochs === 'damage') steps.push('begin a new leader epoch in every log, since damage was left out')
  if (newEpochs === 'unclean')
    steps.push('begin a new leader epoch in every log, since records may be missing')
  const list = steps.map((step) => `  - ${step}`)
  if (outcome === 'recover') return [printer.styled('yellow', `${when} would`), ...list]
  const refused =
    owner === undefined
      ? 'Opening it would be refused:'
      : 'What was read does not fit together. It changes too fast for that, or it is damaged:'
  const lines = [printer.styled('red', refused)]
  for (const { code, message } of refusals) lines.push(`  ${code}: ${message}`)
  if (!refusals.every(({ salvageable }) => salvageable)) return lines
  const anew = refusals.some(({ file }) => file?.startsWith('logs/') === true)
    ? ['  - write damaged segments anew, with what is sound of them; `odradek verify` names all of them']
    : []
  return [...lines, 'With `salvage` it would', ...anew, ...list]
}

function byDirectory(files: readonly string[]): ReadonlyMap<string, string[]> {
  const directories = new Map<string, string[]>()
  for (const file of files) {
    const directory = file.slice(0, file.lastIndexOf('/'))
    directories.set(directory, [...(directories.get(directory) ?? []), file])
  }
  return directories
}

/** A line a batch. */
export async function* batchLines(
  batches: AsyncIterable<BatchReport | DamageReport>,
  printer: Printer,
): AsyncGenerator<string> {
  const head = [
    'offsets',
    'count',
    'position',
    'bytes',
    'newest',
    'epoch',
    'producer',
    'kind',
    'codec',
    'crc',
    'file',
  ]
  let rows: string[][] = [head]
  for await (const batch of batches) {
    rows.push('damage' in batch ? damageRow(batch) : batchRow(batch))
    if (rows.length < ROWS_AT_ONCE) continue
    yield* linesOf(rows, printer)
    rows = []
  }
  yield* linesOf(rows, printer)
}

function linesOf(rows: readonly string[][], printer: Printer): string[] {
  return table(rows, [0, 1, 2, 3, 5]).map((line) =>
    / (?:WRONG|DAMAGED) /.test(line) ? printer.styled('red', line) : line,
  )
}

function batchRow(batch: BatchReport): string[] {
  const { base, last, count, position, sizeBytes, producer } = batch
  return [
    base === last ? String(base) : `${base}-${last}`,
    String(count),
    String(position),
    String(sizeBytes),
    batch.newest ?? '-',
    String(batch.leaderEpoch),
    producer === null ? '-' : `${producer.id}/${producer.epoch} from ${producer.sequence}`,
    kindOf(batch),
    batch.compression,
    batch.crc === 'ok' ? 'ok' : 'WRONG',
    batch.file,
  ]
}

function kindOf({ control, transactional, inProcess }: BatchReport): string {
  if (control !== null) return control
  return [transactional ? 'transactional' : '', inProcess ? 'in process' : 'wire'].filter(Boolean).join(', ')
}

function damageRow({ position, damage, file }: DamageReport): string[] {
  return ['DAMAGED', '', String(position), '', damage, '', '', '', '', '', file]
}
