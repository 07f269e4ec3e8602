/**
 * One client's connection: requests come in, are started in their order, and are answered in it.
 *
 *   socket ─► FrameReader ─► Router ─► │ slot │ slot │ slot │ ─► Outbox ─► socket
 *                                       answered  waits  answered
 *
 * A slot is a request that was started. Its response leaves when it is the first in line; a produce that wants no
 * acknowledgement leaves the line without one. The socket is not read while too many requests are in the line, while
 * its client does not read what it asked for, or while the whole server holds too many bytes; so that nothing that a
 * client does makes it hold more than it was told to.
 *
 * The socket is any duplex stream of bytes, half open: TLS is somebody else's. The chunks that it hands over are ours.
 * Nothing here is after its 'close'.
 */
import type { Duplex } from 'node:stream'
import type { CoreContext } from '../core/context.ts'
import { Deque } from '../core/deque.ts'
import { type Due, DueCallback } from '../core/due-queue.ts'
import { capacityFor } from '../log/format/buffer-pool.ts'
import { readInt16 } from '../log/format/integers.ts'
import { messageOf } from '../model/errors.ts'
import { type FrameMemory, FrameReader } from '../wire/frames.ts'
import { produce } from '../wire/messages/00-produce.ts'
import { checkSize } from './frame-size.ts'
import {
  AUTHENTICATION_DEADLINE_MS,
  type BufferedBytes,
  HIGH_WATER_BYTES,
  LINGER_MS,
  LOOK_EVERY_MS,
  MAX_IN_FLIGHT,
  MAX_UNAUTHENTICATED_BYTES,
  MIN_PROGRESS_BYTES,
  type ServerLimits,
} from './limits.ts'
import { Outbox } from './outbox.ts'
import type { Router } from './router.ts'
import { type Door, Session } from './session.ts'
import type { Traffic } from './traffic.ts'

/** What all connections of a server have in common. */
export interface Shared {
  readonly ctx: Pick<CoreContext, 'clock' | 'due' | 'logger'>
  readonly router: Router
  readonly limits: Pick<ServerLimits, 'maxRequestBytes' | 'maxIdleMs'>
  readonly buffered: BufferedBytes
  readonly traffic: Pick<Traffic, 'receivedBytes' | 'sentBytes'>
  /** Of requests; null where somebody looks on who may keep what he saw: no memory is used again then, of answers neither. */
  readonly memory: FrameMemory | null
}

/** A request that was started, and the room its frame takes until it is answered. */
interface Slot {
  readonly requestBytes: number
  /** Lets go of its frame, where that is not needed when it is answered. */
  done: (() => void) | undefined
  answered: boolean
  response: readonly Uint8Array[]
  /** Called when the response has left. */
  readonly sent: (() => void)[]
}

/** In front of every frame. */
const LENGTH_BYTES = 4
const API_KEY_BYTES = 2
const NO_RESPONSE: readonly Uint8Array[] = []

/** Its handler keeps nothing of it: a log copies what it takes. Others do, parts of groups' metadata for instance. */
function isProduce(frame: Uint8Array, { tokens }: Session): boolean {
  return tokens === undefined && frame.length > API_KEY_BYTES && readInt16(frame, 0) === produce.key
}

/** How far a connection is, when it is looked at. */
interface Progress {
  readonly admitted: number
  readonly receivedBytes: number
  readonly sentBytes: number
  readonly isSending: boolean
}

const NO_PROGRESS: Progress = { admitted: 0, receivedBytes: 0, sentBytes: 0, isSending: false }

export class Connection {
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>
  readonly session: Session
  readonly #socket: Duplex
  readonly #shared: Shared
  readonly #outbox: Outbox
  readonly #frames: FrameReader
  readonly #slots = new Deque<Slot>()
  /** Slots that are not answered. */
  #underWay = 0
  /** What the frame that was read last takes. */
  #frameBytes = 0
  /** Of responses, in the line and in the outbox. */
  #responseBytes = 0
  /** No more bytes come. */
  #ended = false
  /** What is in flight is answered, and nothing else. */
  #draining = false
  /** All is answered. */
  #ending = false
  #isClosed = false
  #reading = true
  #advancing = false
  #activeAt: number
  /** Frames that were admitted, bytes that came and bytes that left: what a look compares. */
  #admitted = 0
  #receivedBytes = 0
  #sentBytes = 0
  #looked: Progress = NO_PROGRESS
  readonly #look: Due = new DueCallback(() => this.#checkProgress())
  readonly #idle: Due = new DueCallback(() => this.#checkIdle())
  readonly #deadline: Due = new DueCallback(() => this.#drop('warn', 'it did not authenticate in time'))

  constructor(socket: Duplex, host: string, door: Door, shared: Shared) {
    this.#socket = socket
    this.#shared = shared
    this.#frames = new FrameReader(this.#admit, shared.memory ?? undefined)
    const { clock, due } = shared.ctx
    this.session = new Session(
      host,
      door,
      () => due.cancel(this.#deadline),
      () => this.drain(),
    )
    this.#outbox = new Outbox(socket, this.#written)
    this.#activeAt = clock.monotonic()
    due.schedule(this.#idle, this.#activeAt + shared.limits.maxIdleMs)
    if (!this.session.authenticated) {
      due.schedule(this.#deadline, this.#activeAt + AUTHENTICATION_DEADLINE_MS)
    }
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#end()
        resolve()
      })
    })
    socket.on('error', (error) => {
      shared.ctx.logger.debug({ ...this.#about, reason: messageOf(error) }, 'a connection failed')
    })
    socket.once('end', () => this.#onEnd())
    socket.on('data', (chunk: Uint8Array) => {
      this.#activeAt = clock.monotonic()
      this.#receivedBytes += chunk.length
      this.#frames.push(chunk)
      this.#advance()
    })
  }

  /** Starts nothing more, wakes what waits, and closes when all is answered. */
  drain(): void {
    this.#draining = true
    this.session.end()
    this.#advance()
  }

  /** Closes at once. */
  destroy(): void {
    this.#socket.destroy()
  }

  /** Whether a frame may be read; if so, its room is taken. @throws OdradekError PROTOCOL_ERROR for one that is none */
  readonly #admit = (sizeBytes: number): boolean => {
    const { buffered, limits, traffic } = this.#shared
    if (this.session.authenticated) checkSize(sizeBytes, limits.maxRequestBytes, 'maxRequestBytes')
    else checkSize(sizeBytes, MAX_UNAUTHENTICATED_BYTES, 'before a client has shown who it is')
    if (buffered.full) {
      buffered.wait(this.#resume)
      return false
    }
    this.#frameBytes = capacityFor(sizeBytes)
    buffered.take(this.#frameBytes)
    traffic.receivedBytes += LENGTH_BYTES + sizeBytes
    this.#admitted++
    return true
  }

  /** Takes what can be taken, sends what can be sent, and reads on or not. */
  #advance(): void {
    // A request that is answered at once ends up here while another one is being started.
    if (this.#advancing || this.#isClosed) return
    this.#advancing = true
    try {
      while (this.#mayStart()) {
        const frame = this.#frames.next()
        if (frame === undefined) break
        this.#start(frame)
      }
    } catch (error) {
      this.#drop('warn', messageOf(error))
    } finally {
      this.#advancing = false
    }
    this.#outbox.flush()
    this.#read(this.#mayStart() && !this.#frames.held)
    if (this.#look.heapIndex < 0 && this.#holdsRoom) this.#lookLater()
    this.#endIfDone()
  }

  readonly #resume = (): void => this.#advance()

  #mayStart(): boolean {
    if (this.#draining || this.#isClosed) return false
    // Who a client is may change with the answer.
    const max = this.session.authenticated ? MAX_IN_FLIGHT : 1
    if (this.#slots.length >= max || this.#responseBytes >= HIGH_WATER_BYTES) return false
    const { buffered } = this.#shared
    if (buffered.choked) buffered.wait(this.#resume)
    return !buffered.choked
  }

  #read(reading: boolean): void {
    if (reading === this.#reading) return
    this.#reading = reading
    if (reading) this.#socket.resume()
    else this.#socket.pause()
  }

  #start(frame: Uint8Array): void {
    const slot: Slot = {
      requestBytes: this.#frameBytes,
      done: isProduce(frame, this.session) ? this.#frames.lastDone : undefined,
      answered: false,
      response: NO_RESPONSE,
      sent: [],
    }
    this.#slots.push(slot)
    this.#underWay++
    try {
      const whenSent = this.#shared.memory === null ? undefined : (sent: () => void) => slot.sent.push(sent)
      const answer = this.#shared.router.route(frame, this.session, whenSent)
      if (!(answer instanceof Promise)) {
        this.#answered(slot, answer)
        return
      }
      answer.then(
        (response) => {
          this.#answered(slot, response)
          this.#advance()
        },
        () => this.#failed(slot),
      )
    } catch {
      // The router has told the log.
      this.#failed(slot)
    }
  }

  #failed(slot: Slot): void {
    // Some of it may still be under way.
    slot.done = undefined
    this.#answered(slot, null)
    this.#close()
  }

  /** Lets go of the request, also of one whose connection is closed, and of all responses that need not wait. */
  #answered(slot: Slot, response: readonly Uint8Array[] | null): void {
    const { buffered } = this.#shared
    this.#underWay--
    if (!this.#isClosed) {
      slot.answered = true
      slot.response = response ?? NO_RESPONSE
      const sizeBytes = slot.response.reduce((sum, { length }) => sum + length, 0)
      this.#responseBytes += sizeBytes
      buffered.takeResponse(sizeBytes)
      for (let first = this.#slots.peek(); first?.answered; first = this.#slots.peek()) {
        this.#slots.shift()
        this.#outbox.push(first.response, first.sent)
      }
    }
    slot.done?.()
    // Last, since it lets others go on.
    buffered.give(slot.requestBytes)
  }

  readonly #written = (sizeBytes: number): void => {
    if (this.#isClosed) return
    this.#activeAt = this.#shared.ctx.clock.monotonic()
    this.#responseBytes -= sizeBytes
    this.#sentBytes += sizeBytes
    this.#shared.traffic.sentBytes += sizeBytes
    this.#shared.buffered.giveResponse(sizeBytes)
    this.#advance()
  }

  #onEnd(): void {
    const { due, clock } = this.#shared.ctx
    this.#ended = true
    this.session.end()
    due.schedule(this.#idle, clock.monotonic() + LINGER_MS)
    this.#advance()
  }

  #endIfDone(): void {
    if (!this.#ended && !this.#draining) return
    if (this.#ending || this.#isClosed || this.#slots.length > 0 || this.#responseBytes > 0) return
    // Frames that came before the end may still wait for room.
    if (this.#ended && !this.#draining && this.#frames.held) return
    this.#ending = true
    this.#socket.end(() => this.#socket.destroy())
  }

  #checkIdle(): void {
    const { ctx, limits } = this.#shared
    const now = ctx.clock.monotonic()
    if (this.#ended) {
      this.#drop('info', 'it sends no more, and what it asked for is not done')
      return
    }
    // Who waits for us is not idle; who does not read what is there is.
    const waits = (this.#underWay > 0 || this.#frames.held) && this.#outbox.bytes === 0
    const since = waits ? now : this.#activeAt
    if (now - since < limits.maxIdleMs) ctx.due.schedule(this.#idle, since + limits.maxIdleMs)
    else this.#drop('info', 'it was idle for too long (maxIdleMs)')
  }

  // ── who holds room that others wait for ─────────────────────────────────────────────────────────

  get #holdsRoom(): boolean {
    return !this.#isClosed && (this.#frames.heldBytes > 0 || this.#outbox.bytes > 0)
  }

  /** Not each time that there is something: most is gone before anybody looks. */
  #lookLater(): void {
    const { due, clock } = this.#shared.ctx
    const isSending = this.#outbox.bytes > 0
    const { heldBytes } = this.#frames
    this.#looked = {
      // Of a frame that is whole by now, the next look says nothing.
      admitted: heldBytes > 0 ? this.#admitted : -1,
      receivedBytes: this.#receivedBytes,
      sentBytes: this.#sentBytes,
      isSending,
    }
    due.schedule(this.#look, clock.monotonic() + LOOK_EVERY_MS)
  }

  /** Room is taken when a length is read, so who sends no more of its request would keep it from all others. */
  #checkProgress(): void {
    if (!this.#holdsRoom) return
    const { admitted, receivedBytes, sentBytes, isSending } = this.#looked
    const isSameFrame = this.#frames.heldBytes > 0 && admitted === this.#admitted
    // Where its socket is not read, it is we who are slow.
    const sendsTooLittle =
      isSameFrame && this.#reading && this.#receivedBytes - receivedBytes < MIN_PROGRESS_BYTES
    const readsNothing = this.#outbox.bytes > 0 && isSending && sentBytes === this.#sentBytes
    if ((sendsTooLittle || readsNothing) && this.#shared.buffered.awaited) {
      this.#drop(
        'warn',
        `it holds room that others wait for, and ${sendsTooLittle ? 'sends' : 'reads'} too slowly`,
      )
    } else this.#lookLater()
  }

  get #about(): object {
    return { client: this.session.host, listener: this.session.door.listener }
  }

  #drop(level: 'info' | 'warn', reason: string): void {
    this.#shared.ctx.logger[level]({ ...this.#about, reason }, 'a connection is closed')
    this.#close()
  }

  /** What was answered before may still go out, as far as the system takes it at once. */
  #close(): void {
    if (this.#isClosed) return
    this.#outbox.flush()
    this.#socket.destroy()
    this.#end()
  }

  /** Lets go of everything but the requests under way, which let go of themselves. */
  #end(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const { buffered, ctx } = this.#shared
    ctx.due.cancel(this.#idle)
    ctx.due.cancel(this.#deadline)
    ctx.due.cancel(this.#look)
    this.#slots.clear()
    buffered.forget(this.#resume)
    this.session.end()
    buffered.giveResponse(this.#responseBytes)
    buffered.give(this.#frames.heldBytes)
  }
}
