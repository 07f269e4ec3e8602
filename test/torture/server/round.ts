/**
 * One round: a server, a few hostile clients, an honest one, so many frames; then all is counted.
 *
 *   frames ─► connections ─► every few: the honest client asks, marks are compared, time goes on a little
 *   end    ─► 25 days go by: who waits is answered, who does not is closed for being idle
 *          ─► nothing is buffered, nobody watches a partition; topics go, and no timer is left of all that
 */

import type { Topic } from '../../../src/core/topic.ts'
import type { Engine } from '../../../src/log/contract.ts'
import type { Handler } from '../../../src/server/handler.ts'
import type { ManualClock } from '../../../src/testing/manual-clock.ts'
import { readResponse } from '../../../src/wire/api.ts'
import { Dice } from '../dice.ts'
import { CORPUS, type Sample } from '../wire/corpus.ts'
import { int32, mutated } from '../wire/mutate.ts'
import { busyMs } from './busy.ts'
import { Honest } from './honest.ts'
import { Lore } from './lore.ts'
import type { PipeClient } from './pipe.ts'
import { type Asked, Requests } from './requests.ts'
import { HONEST_TOPIC, Rig } from './rig.ts'

const CLIENTS = 4
const MAX_WAITING = 24
const FRAMES_A_TURN = 16
const HONEST_EVERY = 128
const CHECK_EVERY = 1_024
/** Longer than any wait that an int32 of milliseconds can ask for. */
const THE_END_MS = 2 ** 31 + 3_600_000
/** Retention is looked at so often, or up to once a second where it is shorter: then the end would take an hour. */
const MINUTE_MS = 60_000
const SLOW_MS = 2_000

const REQUESTS: readonly Sample[] = CORPUS.filter(({ kind }) => kind === 'request')

export interface RoundOptions {
  readonly seed: number
  readonly frames: number
  readonly engine?: Engine
  readonly clock?: ManualClock
  readonly handlers?: readonly Handler[]
}

export interface Outcome {
  readonly frames: number
  readonly answered: number
  readonly closed: number
  readonly acknowledged: number
  readonly faults: readonly string[]
}

export async function playRound(options: RoundOptions): Promise<Outcome> {
  const round = new Round(options)
  return round.play()
}

interface Hostile {
  readonly client: PipeClient
  readonly asked: Map<number, Asked>
}

class Round {
  readonly #dice: Dice
  readonly #rig: Rig
  readonly #frames: number
  readonly #faults: string[] = []
  readonly #hostile: Hostile[] = []
  readonly #marks = new Map<string, number>()
  #lore = new Lore([])
  /** Not one of the corpus. */
  #correlationId = 0x5e00_0000
  #answered = 0
  #closed = 0

  constructor({ seed, frames, ...options }: RoundOptions) {
    this.#dice = new Dice(seed)
    this.#frames = frames
    this.#rig = new Rig(this.#dice, options)
  }

  readonly #fault = (what: string): void => {
    if (!this.#faults.includes(what)) this.#faults.push(what)
  }

  async play(): Promise<Outcome> {
    const rig = this.#rig
    await rig.broker.restore()
    await rig.furnish()
    const { due } = rig.shared.ctx
    const before = due.size
    this.#lore = new Lore([rig.kafka.parts.topics.require(HONEST_TOPIC).id])
    const honest = new Honest(rig, this.#fault)
    await this.#attack(honest)
    await honest.check()
    await this.#end()
    this.#counts(before)
    const acknowledged = honest.acknowledged.flat()
    if (new Set(rig.handed).size !== acknowledged.length) {
      this.#fault(`a reader in process was handed ${rig.handed.length} of ${acknowledged.length} records`)
    }
    this.#tellLog()
    await rig.broker.close({ drainMs: 0 })
    const [answered, closed] = [this.#answered, this.#closed]
    return { frames: this.#frames, answered, closed, acknowledged: acknowledged.length, faults: this.#faults }
  }

  async #attack(honest: Honest): Promise<void> {
    for (let sent = 1; sent <= this.#frames && !honest.dead; sent++) {
      const from = busyMs()
      this.#send()
      const tookMs = busyMs() - from
      if (tookMs > SLOW_MS) this.#fault(`a frame took ${Math.round(tookMs)} ms`)
      if (sent % FRAMES_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve))
      if (sent % HONEST_EVERY === 0) await this.#look(honest, sent)
    }
  }

  async #look(honest: Honest, sent: number): Promise<void> {
    await honest.produce()
    this.#checkMarks()
    if (sent % CHECK_EVERY === 0) await honest.check()
    // Not as long as makes an honest connection idle.
    if (this.#dice.chance(0.3))
      await this.#rig.clock.advance(this.#dice.pick([1, 50, 1_000, 31_000, 400_000]))
  }

  // ── one frame ─────────────────────────────────────────────────────────────────────────────────

  #send(): void {
    const hostile = this.#someone()
    const dice = this.#dice
    const roll = dice.below(100)
    if (roll < 6)
      hostile.client.send(framed(mutated(dice.pick(REQUESTS).frame, dice.pick(REQUESTS).frame, dice)))
    else this.#ask(hostile, roll < 18)
    if (dice.chance(0.002)) hostile.client.server.push(Uint8Array.from({ length: 9 }, () => dice.below(256)))
    if (dice.chance(0.002)) hostile.client.server.push(null)
  }

  #ask({ client, asked }: Hostile, breaks: boolean): void {
    const dice = this.#dice
    const handler = dice.pick(this.#rig.handlers)
    const id = ++this.#correlationId
    // What is broken has an id that no flipped bit makes one of those that are asked for.
    const request = new Requests(dice, this.#lore).of(handler, breaks ? ~id & 0x7fff_ffff : id)
    if (breaks) {
      client.send(framed(mutated(request.frame.subarray(4), dice.pick(REQUESTS).frame, dice)))
      return
    }
    asked.set(id, request)
    if (dice.chance(0.05)) {
      // In two pieces, so that it is put together.
      const at = dice.below(request.frame.length)
      client.server.push(request.frame.slice(0, at))
      client.send(request.frame.slice(at))
    } else client.send(request.frame)
  }

  #someone(): Hostile {
    const index = this.#dice.below(CLIENTS)
    const known = this.#hostile[index]
    if (known !== undefined && !known.client.closed && known.client.waiting < MAX_WAITING) return known
    if (known !== undefined) {
      this.#closed++
      known.client.server.destroy()
    }
    const asked = new Map<number, Asked>()
    const client = this.#rig.connect((frame) => this.#hear(asked, frame))
    const hostile = { client, asked }
    this.#hostile[index] = hostile
    return hostile
  }

  /** An answer has the form of its API, whatever was asked. */
  #hear(asked: Map<number, Asked>, frame: Uint8Array): void {
    this.#answered++
    const id = Buffer.from(frame.buffer, frame.byteOffset, frame.length).readInt32BE(0)
    const request = asked.get(id)
    if (request === undefined) return
    asked.delete(id)
    const { handler, version } = request
    try {
      const { body } = readResponse(handler.api, version, frame)
      if (this.#dice.chance(0.2)) this.#lore.hear(body)
    } catch (error) {
      this.#fault(`an answer of ${handler.api.name} ${version} cannot be read: ${String(error)}`)
    }
  }

  // ── what must hold ────────────────────────────────────────────────────────────────────────────

  #checkMarks(): void {
    for (const topic of this.#rig.kafka.parts.topics.list()) {
      for (const { index, log } of topic.partitions) {
        const { start, stable, high, end } = log.marks
        if (!(start >= 0 && start <= high && stable <= high && high <= end)) {
          this.#fault(`the marks of ${topic.name}/${index} are ${start}, ${stable}, ${high}, ${end}`)
        }
        const key = `${topic.id}/${index}`
        if (high < (this.#marks.get(key) ?? 0)) this.#fault(`${topic.name}/${index} went back to ${high}`)
        this.#marks.set(key, high)
      }
    }
  }

  async #end(): Promise<void> {
    const rig = this.#rig
    // Partitions may still be on their way. Alterations go one after the other, so this one is the last.
    let isAltered = false
    void rig.kafka.parts.topics.alter(HONEST_TOPIC, {}).finally(() => {
      isAltered = true
    })
    while (!isAltered) await rig.clock.advance(1)
    await this.#deleteTopics(
      ({ retention, partitions }) => retention.ageMs < MINUTE_MS || partitions.length > 100,
    )
    await rig.clock.advance(THE_END_MS)
    for (const { client } of this.#hostile) {
      if (!client.closed) this.#fault(`a connection still waits for ${client.waiting} answers after 25 days`)
    }
    for (const connection of rig.connections) connection.destroy()
    await rig.settle()
    for (const { name } of rig.kafka.parts.topics.list()) this.#countWatchers(name)
    await this.#deleteTopics(() => true)
    if (rig.connections.size > 0) this.#fault(`${rig.connections.size} connections are left`)
  }

  async #deleteTopics(which: (topic: Topic) => boolean): Promise<void> {
    const { topics } = this.#rig.kafka.parts
    const going = topics.list().filter((topic) => topic.name !== HONEST_TOPIC && which(topic))
    await Promise.all(going.map(({ name }) => topics.delete(name)))
    await this.#rig.settle()
  }

  #counts(before: number): void {
    const rig = this.#rig
    const { groups } = rig.kafka.parts
    const { buffered, ctx } = rig.shared
    if (buffered.bytes !== 0) this.#fault(`${buffered.bytes} bytes are still counted`)
    const groupsLeft = [...groups.all()].length
    if (groupsLeft > 0) this.#fault(`${groupsLeft} groups are left`)
    if (rig.kafka.fetchSessions.size > 1_000) this.#fault('there are too many fetch sessions')
    if (ctx.due.size > before) this.#fault(`${ctx.due.size} timers are left of ${before}`)
  }

  #countWatchers(topic: string): void {
    for (const { index, watchers } of this.#rig.kafka.parts.topics.require(topic).partitions) {
      if (watchers.size > 0) this.#fault(`${watchers.size} still watch ${topic}/${index}`)
    }
  }

  /** Whatever was thrown is a fault of ours. */
  #tellLog(): void {
    for (const { level, details, message } of this.#rig.logged) {
      if (level !== 'error') continue
      const { request, error, reason } = details as { request?: string; error?: unknown; reason?: string }
      const stack = error instanceof Error ? (error.stack ?? '').split('\n').slice(0, 4).join('\n      ') : ''
      this.#fault(`${message}: ${request?.replace(/"x{99,}"/, 'long') ?? ''} ${reason ?? ''} ${stack}`)
    }
  }
}

function framed(frame: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + frame.length)
  bytes.set(int32(frame.length))
  bytes.set(frame, 4)
  return bytes
}
