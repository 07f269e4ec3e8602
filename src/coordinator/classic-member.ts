/**
 * One member of a classic group: what it said when it joined, what it was assigned, and what it waits for. Its session
 * is a due thing: it fires when the member was not heard of for its session timeout, and rests while a join or a sync
 * of the member waits for an answer, as that is then ours to give.
 */
import { Due } from '../core/due-queue.ts'
import { fromBase64, toBase64 } from '../model/bytes-as-text.ts'
import {
  type JoinRequest,
  type JoinResult,
  NO_ASSIGNMENT,
  type Protocol,
  type SyncResult,
} from './classic-requests.ts'

/** What a member says of itself when it joins. */
type Said = Pick<
  JoinRequest,
  | 'memberId'
  | 'instanceId'
  | 'clientId'
  | 'clientHost'
  | 'sessionTimeoutMs'
  | 'rebalanceTimeoutMs'
  | 'protocols'
>

/** As it outlives the process. Bytes are in base64. */
export interface StoredClassicMember extends Omit<Said, 'memberId' | 'protocols'> {
  readonly protocols: readonly (Omit<Protocol, 'metadata'> & { readonly metadata: string })[]
  readonly assignment: string
}

/** An answer that is given later; null where nobody waits for it any more. */
class Reply<T> {
  readonly answered: Promise<T | null>
  readonly #signal: AbortSignal
  #resolve: (value: T | null) => void = () => {}
  readonly #abort: () => void

  constructor(signal: AbortSignal, onGone: () => void) {
    this.#signal = signal
    this.answered = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#abort = () => {
      this.#resolve(null)
      onGone()
    }
    signal.addEventListener('abort', this.#abort, { once: true })
  }

  give(value: T): void {
    this.#signal.removeEventListener('abort', this.#abort)
    this.#resolve(value)
  }
}

export class ClassicMember extends Due {
  readonly id: string
  readonly instanceId: string | null
  readonly clientId: string
  readonly clientHost: string
  sessionTimeoutMs: number = 0
  rebalanceTimeoutMs: number = 0
  protocols: readonly Protocol[] = []
  /** Whether it is stored as it is. */
  isKept: boolean = false
  #assignment: Uint8Array = NO_ASSIGNMENT
  #joining: Reply<JoinResult> | null = null
  #syncing: Reply<SyncResult> | null = null
  /** It has not been told yet that it is a member. */
  isNew: boolean = true
  readonly #knowsId: boolean
  readonly #onExpired: (member: ClassicMember) => void

  constructor(id: string, request: Said, onExpired: (member: ClassicMember) => void) {
    super()
    this.id = id
    this.#knowsId = request.memberId === id
    this.instanceId = request.instanceId
    this.clientId = request.clientId
    this.clientHost = request.clientHost
    this.#onExpired = onExpired
    this.update(request)
  }

  /** One of the process before. */
  static restored(
    id: string,
    { assignment, protocols, ...said }: StoredClassicMember,
    onExpired: (member: ClassicMember) => void,
  ): ClassicMember {
    const known = protocols.map((each) => ({ ...each, metadata: fromBase64(each.metadata) }))
    const member = new ClassicMember(id, { ...said, memberId: id, protocols: known }, onExpired)
    member.#assignment = fromBase64(assignment)
    member.isNew = false
    member.isKept = true
    return member
  }

  get stored(): StoredClassicMember {
    const { instanceId, clientId, clientHost, sessionTimeoutMs, rebalanceTimeoutMs } = this
    return {
      instanceId,
      clientId,
      clientHost,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      protocols: this.protocols.map((each) => ({ ...each, metadata: toBase64(each.metadata) })),
      assignment: toBase64(this.#assignment),
    }
  }

  get assignment(): Uint8Array {
    return this.#assignment
  }

  set assignment(assignment: Uint8Array) {
    if (!areEqual(assignment, this.#assignment)) this.isKept = false
    this.#assignment = assignment
  }

  update({ sessionTimeoutMs, rebalanceTimeoutMs, protocols }: Said): void {
    const isSame =
      sessionTimeoutMs === this.sessionTimeoutMs &&
      rebalanceTimeoutMs === this.rebalanceTimeoutMs &&
      this.matches(protocols)
    if (!isSame) this.isKept = false
    this.sessionTimeoutMs = sessionTimeoutMs
    this.rebalanceTimeoutMs = rebalanceTimeoutMs
    this.protocols = protocols
  }

  // ── waiting ───────────────────────────────────────────────────────────────────────────────────

  /** It has joined, and waits for the others. So does one whose client is gone, but may come again. */
  get isJoining(): boolean {
    return this.#joining !== null
  }

  /** Whether it waits for an answer, of which there is no telling when it comes. */
  get isWaiting(): boolean {
    return this.#joining !== null || this.#syncing !== null
  }

  /** `onGone`: nobody waits for the answer any more. */
  waitToJoin(signal: AbortSignal, onGone: () => void): Promise<JoinResult | null> {
    const reply = new Reply<JoinResult>(signal, () => {
      if (this.#joining === reply) onGone()
    })
    this.#joining = reply
    return reply.answered
  }

  waitToSync(signal: AbortSignal): Promise<SyncResult | null> {
    this.#syncing = new Reply<SyncResult>(signal, () => undefined)
    return this.#syncing.answered
  }

  /** Whether it waited for that. */
  answerJoin(result: JoinResult): boolean {
    const joining = this.#joining
    this.#joining = null
    joining?.give(result)
    return joining !== null
  }

  answerSync(result: SyncResult): boolean {
    const syncing = this.#syncing
    this.#syncing = null
    syncing?.give(result)
    return syncing !== null
  }

  override fire(): void {
    this.#onExpired(this)
  }

  /** Whether its client has a name by which it can come again. */
  get canComeAgain(): boolean {
    return this.#knowsId || this.instanceId !== null || !this.isNew
  }

  // ── what it said ──────────────────────────────────────────────────────────────────────────────

  /** What it said for a protocol. */
  metadataFor(protocol: string | null): Uint8Array {
    return this.protocols.find(({ name }) => name === protocol)?.metadata ?? NO_ASSIGNMENT
  }

  /** Whether a join says nothing new. */
  matches(protocols: readonly Protocol[]): boolean {
    return (
      protocols.length === this.protocols.length &&
      protocols.every(({ name, metadata }, i) => {
        const mine = this.protocols[i] as Protocol
        return name === mine.name && areEqual(metadata, mine.metadata)
      })
    )
  }
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
