/**
 * `npm run torture -- --many`: for every API and every list in its requests, one request that names very many things,
 * against a whole server. Tells how much larger the answer is than the request, and how long the longest turn of the
 * event loop was, in milliseconds of work: that is how long everybody else had to wait.
 *
 *   --frames N   things named by a request (default 100,000; as many as a request of 8 MiB holds, if that is fewer)
 *
 * Passes where every request is answered or refused, nothing throws, no answer is more than so many times as large as its
 * request, and no turn longer than a second.
 */
import process from 'node:process'
import type { Handler } from '../../../src/server/handler.ts'
import { HANDLERS } from '../../../src/server/handlers.ts'
import { DEFAULT_MAX_PLAIN_REQUEST_BYTES } from '../../../src/server/limits.ts'
import { Session } from '../../../src/server/session.ts'
import { writeRequest } from '../../../src/wire/api.ts'
import { produce } from '../../../src/wire/messages/00-produce.ts'
import { GroupClient } from '../../support/group-client.ts'
import { batchOf } from '../../support/record-batches.ts'
import { Dice } from '../dice.ts'
import { busyMs } from './busy.ts'
import { Rig } from './rig.ts'
import { type WideRequest, wideRequests } from './wide.ts'

/** Whatever is asked: an answer may have an error in words for each name of a byte. */
const MAX_FACTOR = 64
/** What an answer may have beside that. */
const MAX_EXTRA_BYTES: number = 64 * 1024
const MAX_TURN_MS = 1_000
const SHOWN = 15
const PRODUCERS = 200
const NOTE = 'n'.repeat(4_000)

export interface Asked {
  readonly what: string
  readonly requestBytes: number
  /** Undefined: the connection was closed. */
  readonly answerBytes: number | undefined
  readonly longestTurnMs: number
}

/** A server with things whose descriptions are large. */
async function furnished(handlers: readonly Handler[]): Promise<Rig> {
  const rig = new Rig(new Dice(1), { handlers })
  await rig.furnish()
  const client = new GroupClient(rig)
  await client.join()
  const topic = rig.kafka.parts.topics.require('wide')
  rig.kafka.parts.groups.checkCommit('committed', { memberId: '', instanceId: null, generation: -1 })
  const commits = topic.partitions.map(({ index: partition }) => {
    return { topicId: topic.id, partition, offset: 1, metadata: NOTE, epoch: -1 }
  })
  await rig.kafka.parts.groupOffsets.commit('committed', commits)
  for (let id = 1; id <= PRODUCERS; id++) {
    const producer = { id, epoch: 0, sequence: 0, transactional: false }
    const records = batchOf({ values: ['v'], producer, timestamp: rig.clock.now() })
    const topicData = [{ name: 'wide', partitionData: [{ index: 0, records }] }]
    await rig.send(produce, 9, { acks: 1, timeoutMs: 1_000, topicData })
  }
  return rig
}

/** Asks it of a server of its own. `handlers`: in place of those of the same key. */
export async function ask(
  handler: Handler,
  which: number,
  count: number,
  handlers: readonly Handler[] = [],
): Promise<Asked> {
  const rig = await furnished(handlers)
  const topicId = rig.kafka.parts.topics.require('wide').id
  const groups = handler.api.name === 'OffsetFetch' ? 'committed' : 'g'
  const scenery = { topic: 'wide', topicId, group: groups }
  const request = wideRequests(handler, count, scenery)[which] as WideRequest
  const pieces = writeRequest(
    handler.api,
    request.version,
    { correlationId: 1, clientId: 'many' },
    request.body as never,
  )
  const frame = new Uint8Array(Buffer.concat(pieces).subarray(4))
  const door = { listener: 'PLAINTEXT', node: rig.kafka.cluster.nodes[0] as never, authenticates: false }
  const session = new Session('127.0.0.1', door, () => {})
  const watch = new Watch()
  let answerBytes: number | undefined
  const answered = (async () => rig.shared.router.route(frame, session))().then(
    (answer) => {
      answerBytes = (answer ?? []).reduce((sum, { length }) => sum + length, 0)
    },
    () => {},
  )
  let isDone = false
  void answered.finally(() => {
    isDone = true
  })
  for (let turns = 0; !isDone; turns++) {
    await watch.turn()
    // What waits for time to go by gets it, once there was time for the rest.
    if (turns > 2_000) await rig.clock.advance(60_000)
  }
  const { longestMs: longestTurnMs } = watch
  await rig.broker.close({ drainMs: 0 })
  for (const { level, message, details } of rig.logged) {
    if (level === 'error') throw new Error(`${request.path}: ${message} ${JSON.stringify(details)}`)
  }
  const names = request.isDistinct ? 'different' : 'the same'
  const what = `${handler.api.name} ${request.path}, ${names}`
  return { what, requestBytes: frame.length, answerBytes, longestTurnMs }
}

/** Of the event loop. */
class Watch {
  longestMs = 0
  #at = busyMs()

  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    const now = busyMs()
    this.longestMs = Math.max(this.longestMs, now - this.#at)
    this.#at = now
  }
}

export function isTooLarge({ requestBytes, answerBytes = 0 }: Asked): boolean {
  return answerBytes > requestBytes * MAX_FACTOR + MAX_EXTRA_BYTES
}

/** Which there are. */
export function* allWide(count: number): Generator<readonly [Handler, number]> {
  const scenery = { topic: 't', topicId: '', group: 'g' }
  for (const handler of HANDLERS) {
    for (let which = 0; which < wideRequests(handler, Math.min(count, 2), scenery).length; which++) {
      yield [handler, which]
    }
  }
}

/** Answers whether all is well. */
export async function tortureWithMany(count: number): Promise<boolean> {
  const all: Asked[] = []
  for (const [handler, which] of allWide(count)) {
    const once = await ask(handler, which, Math.min(count, 100))
    const eachBytes = once.requestBytes / Math.min(count, 100)
    const fits = Math.floor(DEFAULT_MAX_PLAIN_REQUEST_BYTES / (eachBytes + 6))
    all.push(await ask(handler, which, Math.min(count, fits)))
  }
  all.sort((a, b) => b.longestTurnMs - a.longestTurnMs)
  for (const asked of all.slice(0, SHOWN)) process.stdout.write(`  ${lineOf(asked)}\n`)
  const bad = all.filter((each) => isTooLarge(each) || each.longestTurnMs > MAX_TURN_MS)
  for (const asked of bad) process.stdout.write(`  FAULT ${lineOf(asked)}\n`)
  process.stdout.write(`${all.length} requests that name ${count} things, ${bad.length} with faults\n`)
  return bad.length === 0
}

function lineOf({ what, requestBytes, answerBytes, longestTurnMs }: Asked): string {
  const answer =
    answerBytes === undefined
      ? 'refused'
      : `answered ${(answerBytes / 1e6).toFixed(2)} MB, ×${(answerBytes / requestBytes).toFixed(1)}`
  return `${longestTurnMs.toFixed(0)} ms: ${what}, ${(requestBytes / 1e6).toFixed(2)} MB, ${answer}`
}
