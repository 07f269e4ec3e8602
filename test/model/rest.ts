/**
 * What must be so when all is at rest, that is when nothing more can happen without time or somebody from
 * outside: whatever was due has happened, and nothing that could go on has been left lying. A lost wake-up
 * shows here, as a record that a free member could take and did not get.
 */
import type { ModelPartition, Request } from './logs.ts'
import { isForOthers, type Model, nameOf } from './model.ts'
import type { Fate, ModelCursor, ModelMember, ModelReader, Unit } from './readers.ts'

/** Longer than any batch waits to be filled. */
const MAX_LINGER_MS = 1_000

export interface RestView {
  /** Whether `broker.idle()` resolved. */
  readonly isIdle: boolean
  /** Whether the broker keeps the process alive. */
  readonly isHeld: boolean
  /** A redrive is on its way, whose place in line is not to be seen. */
  readonly redriving: boolean
}

export function judgeRest(model: Model, view: RestView): void {
  endWhatIsDue(model)
  for (const reader of model.readers) {
    if (reader.assigned) judgeOwners(model, reader)
    for (const cursor of reader.cursors.values()) judgeCursor(model, cursor)
  }
  for (const member of model.members) judgeLeaving(model, member)
  if (!view.redriving) {
    for (const topic of model.topics.values()) {
      for (const partition of topic.partitions) judgeLine(model, partition)
    }
  }
  judgeIdle(model, view)
}

/** What time, or the broker by itself, must have ended by now. */
function endWhatIsDue(model: Model): void {
  for (const unit of model.units) {
    if (unit.isBusy && hasExpired(model, unit)) model.expire(unit)
  }
  for (const reader of model.readers) {
    for (const cursor of reader.cursors.values()) {
      for (const fate of cursor.fates) if (fate.state === 'dying') model.dead(fate)
      const free = candidates(reader, cursor).some((member) => member.isFree)
      if (free && !mayFill(model)) passCopies(model, cursor)
      if (!cursor.moved && !free) continue
      model.sweep(cursor)
      cursor.moved = false
      cursor.freshDrops = 0
    }
  }
}

function hasExpired(model: Model, unit: Unit): boolean {
  if (unit.deadlineBy <= model.now) return true
  if (unit.deadlineFrom > model.now) return false
  // In between, the signal of an unsettled delivery tells.
  return unit.deliveries.some((delivery, i) => unit.fates[i]?.unit === unit && delivery.signal.aborted)
}

function judgeCursor(model: Model, cursor: ModelCursor): void {
  const { reader, partition } = cursor
  const members = candidates(reader, cursor)
  const free = members.filter((member) => member.isFree)
  if (free.length === 0) return
  const floor = model.floor(cursor)
  const inOrder = cursor.inOrder(floor)
  for (const fate of cursor.open) {
    if (!fate.isIdle || fate.row.offset < floor || isForOthers(fate) || !inOrder(fate)) continue
    if (fate.state === 'waiting' && fate.dueBy > model.now) continue
    const takers = takersOf(fate, members, free)
    const [taker] = takers
    if (taker === undefined || mayFill(model)) continue
    model.problem(
      `${reader.life}: ${nameOf(partition)}/${fate.row.offset} is left ${fate.state}, which ${taker.id} could take`,
    )
    return
  }
}

/** The members that records of a partition may go to. */
function candidates(reader: ModelReader, { partition, inFlight }: ModelCursor): ModelMember[] {
  const members = reader.membersOn(partition.topic)
  if (!reader.assigned) return members
  const owner = reader.owners.get(nameOf(partition))
  // It starts at its new owner once what is in flight has ended.
  if (inFlight.some((fate) => fate.unit?.member.id !== owner)) return []
  return members.filter((member) => member.id === owner)
}

/** Those of the free members that its delivery strategy may give a record to, as far as that is sure. */
function takersOf(fate: Fate, members: readonly ModelMember[], free: readonly ModelMember[]): ModelMember[] {
  const { plan, assigned } = fate.cursor.reader
  if (assigned || members.length === 1) return [...free]
  const others = members.filter((member) => member !== fate.avoid)
  const asked = others.some((member) => member.isAble) ? others : members
  const takers = free.filter((member) => asked.includes(member))
  if (plan.kind === 'group' && plan.strategy === 'first')
    return takers.filter((member) => member === asked[0])
  if (plan.kind === 'group' && plan.strategy === 'sticky-key' && fate.row.key !== null) {
    return takers.length === asked.length ? takers : []
  }
  return takers
}

/** With a member free, the cursor has gone as far as its order lets it, and past copies for others. */
function passCopies(model: Model, cursor: ModelCursor): void {
  const byPartition = cursor.reader.plan.order === 'partition'
  for (const fate of cursor.fates) {
    if (!fate.isOpen) continue
    if (fate.state === 'pending' && isForOthers(fate)) model.pass(fate)
    else if (byPartition) return
  }
}

/** Each partition has one owner, who is there, if anybody is. */
function judgeOwners(model: Model, reader: ModelReader): void {
  for (const { partition } of reader.cursors.values()) {
    const members = reader.membersOn(partition.topic).filter((member) => member.closing === null)
    if (members.length === 0) continue
    const owner = reader.owners.get(nameOf(partition))
    if (reader.members.some((member) => member.id === owner)) continue
    model.problem(`${nameOf(partition)} belongs to ${owner ?? 'nobody'} in ${reader.life}`)
  }
}

function judgeLeaving(model: Model, member: ModelMember): void {
  if (member.left || member.closing === null) return
  if (member.busy > 0 && model.now < member.closing.by) return
  model.problem(`${member.id} of ${member.reader.life} has not left, with ${member.busy} in its hands`)
}

/** Who is next in line waits for room that is not there. */
function judgeLine(model: Model, partition: ModelPartition): void {
  const first = partition.line.find((request) => request.exempt === null)
  for (const request of partition.line) {
    if (request.deadline <= model.now) {
      model.problem(`${request.values[0]} still waits at ${nameOf(partition)} after its time`)
    }
    if (request.exempt === null && request !== first) continue
    if (request.together.every((part) => isNext(part) && model.fits(part, 'lowest'))) {
      model.problem(`${request.values[0]} waits at ${nameOf(partition)}, though there is room`)
    }
  }
}

function isNext(request: Request): boolean {
  const { line } = request.partition
  return request.exempt !== null || line.find((each) => each.exempt === null) === request
}

/** The broker is idle exactly when nothing is in flight, waiting or due. */
function judgeIdle(model: Model, { isIdle, isHeld, redriving }: RestView): void {
  const unsettled = model.units.filter((unit) => unit.isBusy && unit.unsettled.length > 0).length
  const goingOn = model.units.filter((unit) => unit.isBusy).length
  let retrying = 0
  let unsure = redriving || mayFill(model)
  for (const reader of model.readers) {
    for (const cursor of reader.cursors.values()) {
      for (const fate of cursor.fates) {
        if (!isRetrying(model, fate)) continue
        retrying++
        if (fate.dueFrom <= model.now) unsure = true
      }
    }
  }
  let waiting = 0
  for (const { partitions } of model.topics.values())
    for (const { line } of partitions) waiting += line.length
  const closing = model.members.filter((member) => !member.left && member.closing !== null).length
  const active = unsettled + retrying + waiting + closing
  if (unsure) return
  if (isIdle !== (active + goingOn === 0)) {
    const what = `${unsettled} in flight, ${goingOn} running, ${retrying} retrying, ${waiting} waiting, ${closing} closing`
    model.problem(`the broker is ${isIdle ? '' : 'not '}idle with ${what}`)
  }
  if (isHeld !== active > 0) model.problem(`the process is ${isHeld ? '' : 'not '}held with ${active} active`)
}

/** Its retry is due later. What was passed by overflow meanwhile is retried no more; what waits for its order, later. */
export function isRetrying(model: Model, fate: Fate): boolean {
  const { cursor } = fate
  const floor = model.floor(cursor)
  if (fate.state !== 'waiting' || fate.dueBy <= model.now || fate.row.offset < floor) return false
  return cursor.reader.plan.order !== 'key' || cursor.inOrder(floor)(fate)
}

/** Somewhere a batch may wait to be filled, perhaps one of a member that is gone meanwhile. */
function mayFill(model: Model): boolean {
  const linger = model.members.some(({ plan }) => plan.batch > 1 && plan.lingerMs > 0)
  return linger && model.now < model.touchedAt + MAX_LINGER_MS
}
