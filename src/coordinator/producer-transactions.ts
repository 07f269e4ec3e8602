/**
 * The transaction coordinator: what every transactional id is at (producer-transaction.ts), kept in `Meta`, and what
 * makes a transaction end.
 *
 *   meta: transaction/<transactional id>  →  ProducerTransaction
 *
 *   end ─► decided ─► markers in all partitions ─► offsets of its groups ─► complete      one run to completion
 *              │              │ some log takes nothing now
 *              └──────────────┴─► prepared, stored as that ─► goes on when it does        the exception
 *
 * What is asked of a durable engine in one run survives a crash together or not at all. So a decision is on the disk
 * together with everything that follows of it, and a restart finds either an open transaction, which goes on until its
 * timeout, or one that has ended. Where a log refuses a marker for the moment, the decision is stored with those that
 * were taken; what is left is written when there is room, or after a restart, and until then the transactional id is busy.
 *
 * Invariants: a transaction is in memory what the newest change that was asked for makes it; answers wait until that
 * change is durable. Nobody writes to a partition in a transaction that does not name it: `admit` is asked right before the
 * append, in the same run.
 */
import type { CoreContext } from '../core/context.ts'
import { Due } from '../core/due-queue.ts'
import type { Meta } from '../log/contract.ts'
import { ProducerIds } from './producer-ids.ts'
import { type EncodeMarker, Markers } from './producer-markers.ts'
import {
  commits,
  completed,
  type End,
  emptied,
  endOf,
  hasGroup,
  hasPartition,
  identified,
  identityOf,
  isExhausted,
  isPrepared,
  joined,
  type ProducerIdentity,
  type ProducerTransaction,
  partitionKey,
  prepared,
  refusal,
  same,
  type TransactionError,
  unused,
} from './producer-transaction.ts'

const PREFIX = 'transaction/'
/** The longest that a transaction may take: Kafka's transaction.max.timeout.ms. */
const MAX_TIMEOUT_MS = 15 * 60_000
/** A transactional id that nobody uses for so long is forgotten: Kafka's transactional.id.expiration.ms. */
const EXPIRY_MS = 7 * 86_400_000
/** What is prepared is tried again after this long, where nobody says that there is room. */
const RETRY_MS = 1_000

/** Offsets of groups that wait for the end of a transaction. */
export interface TransactionOffsets {
  /**
   * What the producer has set aside counts from now on, or is forgotten: in the call, so that it is of one moment with the
   * rest. Harmless when there is nothing.
   */
  complete(producerId: number, commit: boolean): Promise<void>
}

export interface TransactionPartition {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
}

class Entry extends Due {
  readonly id: string
  txn: ProducerTransaction
  /** Of a prepared transaction. */
  markers: Markers | null = null
  readonly #fired: (entry: Entry) => void

  constructor(id: string, txn: ProducerTransaction, fired: (entry: Entry) => void) {
    super()
    this.id = id
    this.txn = txn
    this.#fired = fired
  }

  override fire(): void {
    this.#fired(this)
  }
}

export class ProducerTransactions {
  readonly ids: ProducerIds
  readonly #ctx: CoreContext
  readonly #meta: Meta
  readonly #offsets: TransactionOffsets
  readonly #encode: EncodeMarker
  readonly #entries = new Map<string, Entry>()

  constructor(ctx: CoreContext, meta: Meta, offsets: TransactionOffsets, encode: EncodeMarker) {
    this.ids = new ProducerIds(meta)
    this.#ctx = ctx
    this.#meta = meta
    this.#offsets = offsets
    this.#encode = encode
  }

  /** After topics and offsets: what was prepared when the former process ended is completed now. */
  restore(): void {
    for (const [key, stored] of [...this.#meta.scan(PREFIX)]) {
      const entry = this.#add(key.slice(PREFIX.length), stored as ProducerTransaction)
      this.#resume(entry)
      this.#schedule(entry)
    }
  }

  #add(id: string, txn: ProducerTransaction): Entry {
    const entry = new Entry(id, txn, (each) => this.#fired(each))
    this.#entries.set(id, entry)
    return entry
  }

  get(transactionalId: string): ProducerTransaction | undefined {
    return this.#entries.get(transactionalId)?.txn
  }

  *all(): Iterable<readonly [transactionalId: string, txn: ProducerTransaction]> {
    for (const { id, txn } of this.#entries.values()) yield [id, txn]
  }

  // ── who a producer is ─────────────────────────────────────────────────────────────────────────

  /**
   * Gives a transactional id to whoever asks: the older producer is fenced, and what it left open is aborted. `given`: what
   * the producer says that it is, to go on after an error.
   */
  async init(
    transactionalId: string,
    timeoutMs: number,
    given: ProducerIdentity | null,
  ): Promise<ProducerIdentity | TransactionError> {
    if (transactionalId === '') return 'INVALID_REQUEST'
    if (timeoutMs <= 0 || timeoutMs > MAX_TIMEOUT_MS) return 'INVALID_TRANSACTION_TIMEOUT'
    return this.#answered(async () => {
      const newId = await this.#spareId(this.#entries.get(transactionalId)?.txn)
      const known = this.#entries.get(transactionalId)
      if (newId < 0 && (known === undefined || isExhausted(known.txn))) return 'CONCURRENT_TRANSACTIONS'
      const entry = known ?? this.#add(transactionalId, unused(newId, timeoutMs, this.#ctx.clock.now()))
      return this.#init(entry, timeoutMs, given, newId)
    })
  }

  /** In one run to completion. */
  async #init(
    entry: Entry,
    timeoutMs: number,
    given: ProducerIdentity | null,
    newId: number,
  ): Promise<ProducerIdentity | TransactionError> {
    const waits: Promise<void>[] = []
    const aborts = entry.txn.phase === 'Ongoing'
    if (aborts) {
      if (given !== null && !same(given, entry.txn)) return 'PRODUCER_FENCED'
      waits.push(this.#end(entry, { commit: false, raises: true, by: given, newId }))
    }
    if (isPrepared(entry.txn)) {
      await Promise.all(waits)
      return 'CONCURRENT_TRANSACTIONS'
    }
    // The end has raised the epoch, and nobody was told of the new one.
    const txn = aborts ? entry.txn : identified(entry.txn, given, newId)
    if (typeof txn === 'string') return txn
    waits.push(this.#store(entry, emptied(txn, timeoutMs, this.#ctx.clock.now())))
    await Promise.all(waits)
    return identityOf(txn)
  }

  /** An id, where one will be needed: to get it may take a while, and after that everything is to be looked at anew. */
  async #spareId(txn: ProducerTransaction | undefined): Promise<number> {
    return txn === undefined || isExhausted(txn) ? this.ids.next() : -1
  }

  // ── under way ─────────────────────────────────────────────────────────────────────────────────

  /** Partitions that the transaction is about to write to. Resolves to null when that is durable. */
  addPartitions(
    transactionalId: string,
    claim: ProducerIdentity,
    partitions: readonly TransactionPartition[],
  ): Promise<TransactionError | null> {
    return this.#join(transactionalId, claim, (txn) => {
      const more: { [key: string]: string } = {}
      for (const { topic, topicId, partition } of partitions) {
        const key = partitionKey(topicId, partition)
        if (!hasPartition(txn, key)) more[key] = topic
      }
      const isNew = Object.keys(more).length > 0 || txn.phase !== 'Ongoing'
      return isNew ? joined(txn, { partitions: more }, this.#ctx.clock.now()) : null
    })
  }

  /** A group that the transaction is about to commit offsets of. */
  addGroup(
    transactionalId: string,
    claim: ProducerIdentity,
    group: string,
  ): Promise<TransactionError | null> {
    return this.#join(transactionalId, claim, (txn) =>
      hasGroup(txn, group) ? null : joined(txn, { group }, this.#ctx.clock.now()),
    )
  }

  async #join(
    transactionalId: string,
    claim: ProducerIdentity,
    change: (txn: ProducerTransaction) => ProducerTransaction | null,
  ): Promise<TransactionError | null> {
    const entry = this.#claimed(transactionalId, claim)
    if (typeof entry === 'string') return entry
    const txn = change(entry.txn)
    if (txn === null) return null
    return this.#answered(async () => {
      await this.#store(entry, txn)
      return null
    })
  }

  /**
   * Whether a transactional batch may be appended now: why not, else null. To be asked right before the append, in the
   * same run. `implicit`: transactions v2, where the first batch adds its partition, and both survive a crash together.
   */
  admit(
    transactionalId: string | null,
    claim: ProducerIdentity,
    { topic, topicId, partition }: TransactionPartition,
    implicit: boolean,
  ): TransactionError | null {
    const entry = this.#claimed(transactionalId, claim)
    if (typeof entry === 'string') return entry
    const key = partitionKey(topicId, partition)
    if (hasPartition(entry.txn, key)) return null
    if (!implicit) return 'TRANSACTION_ABORTABLE'
    this.#storeBehind(entry, joined(entry.txn, { partitions: { [key]: topic } }, this.#ctx.clock.now()))
    return null
  }

  /** The same for offsets of a group. */
  admitGroup(
    transactionalId: string,
    claim: ProducerIdentity,
    group: string,
    implicit: boolean,
  ): TransactionError | null {
    const entry = this.#claimed(transactionalId, claim)
    if (typeof entry === 'string') return entry
    if (hasGroup(entry.txn, group)) return null
    if (!implicit) return 'TRANSACTION_ABORTABLE'
    this.#storeBehind(entry, joined(entry.txn, { group }, this.#ctx.clock.now()))
    return null
  }

  #claimed(transactionalId: string | null, claim: ProducerIdentity): Entry | TransactionError {
    if (transactionalId === null) return 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED'
    if (transactionalId === '') return 'INVALID_REQUEST'
    const entry = this.#entries.get(transactionalId)
    if (entry === undefined) return 'INVALID_PRODUCER_ID_MAPPING'
    return refusal(entry.txn, claim) ?? entry
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Commits or aborts; resolves, when that is durable, to what the producer is from now on. `raises`: transactions v2, where
   * every end raises the epoch.
   */
  async end(
    transactionalId: string,
    claim: ProducerIdentity,
    commit: boolean,
    raises: boolean,
  ): Promise<ProducerIdentity | TransactionError> {
    if (transactionalId === '') return 'INVALID_REQUEST'
    return this.#answered(async () => {
      const known = this.#entries.get(transactionalId)
      if (known === undefined) return 'INVALID_PRODUCER_ID_MAPPING'
      const newId = raises && isExhausted(known.txn) ? await this.ids.next() : -1
      const entry = this.#entries.get(transactionalId)
      if (entry === undefined) return 'INVALID_PRODUCER_ID_MAPPING'
      const decision = endOf(entry.txn, claim, commit, raises)
      if (decision === 'done') return identityOf(entry.txn)
      if (decision !== 'end') return decision
      const ended = this.#end(entry, { commit, raises, by: claim, newId })
      const identity = identityOf(entry.txn)
      await ended
      return identity
    })
  }

  /** Decides, and does all that follows as far as it can be done now: in the call. */
  #end(entry: Entry, end: End): Promise<void> {
    entry.txn = prepared(entry.txn, end, this.#ctx.clock.now())
    return this.#complete(entry) ?? this.#store(entry, entry.txn)
  }

  /** `undefined` where markers are left to be written. */
  #complete(entry: Entry): Promise<void> | undefined {
    const { txn } = entry
    entry.markers ??= new Markers(this.#ctx, this.#encode, txn)
    if (!entry.markers.write()) {
      entry.markers.whenRoom(() => this.#resumeSoon(entry))
      return undefined
    }
    entry.markers = null
    const offsets = this.#offsets.complete(txn.producerId, commits(txn))
    const stored = this.#store(entry, completed(txn, this.#ctx.clock.now()))
    return Promise.all([offsets, stored]).then(() => undefined)
  }

  /** Not at once, since who has room says so in the middle of something. */
  #resumeSoon(entry: Entry): void {
    entry.markers?.stop()
    void this.#ctx.dispatcher.turn().then(() => this.#resume(entry))
  }

  #resume(entry: Entry): void {
    if (!isPrepared(entry.txn)) return
    this.#complete(entry)?.catch((error: unknown) => this.#failed(error))
  }

  // ── what falls due ────────────────────────────────────────────────────────────────────────────

  #schedule(entry: Entry): void {
    const { due, clock } = this.#ctx
    due.schedule(entry, clock.monotonic() + this.#leftMs(entry.txn))
  }

  /** Until its timeout, the next attempt, or its expiry. A wall clock that was set back makes none of them longer. */
  #leftMs(txn: ProducerTransaction): number {
    if (isPrepared(txn)) return RETRY_MS
    const [since, lastsMs] =
      txn.phase === 'Ongoing' ? [txn.startedAt, txn.timeoutMs] : [txn.updatedAt, EXPIRY_MS]
    return Math.min(Math.max(since + lastsMs - this.#ctx.clock.now(), 0), lastsMs)
  }

  #fired(entry: Entry): void {
    const { txn } = entry
    if (isPrepared(txn)) {
      this.#resume(entry)
      if (isPrepared(entry.txn)) this.#schedule(entry)
    } else if (this.#leftMs(txn) > 0) {
      this.#schedule(entry)
    } else if (txn.phase === 'Ongoing') {
      const end = { commit: false, raises: true, by: null, newId: -1 }
      this.#end(entry, end).catch((error: unknown) => this.#failed(error))
    } else {
      this.#entries.delete(entry.id)
      this.#meta.put([[PREFIX + entry.id, null]]).catch((error: unknown) => this.#failed(error))
    }
  }

  // ── storing ───────────────────────────────────────────────────────────────────────────────────

  #store(entry: Entry, txn: ProducerTransaction): Promise<void> {
    entry.txn = txn
    this.#schedule(entry)
    return this.#meta.put([[PREFIX + entry.id, txn]])
  }

  /** What is stored with it is waited for by somebody else. */
  #storeBehind(entry: Entry, txn: ProducerTransaction): void {
    this.#store(entry, txn).catch((error: unknown) => this.#failed(error))
  }

  /** What could not be stored is an answer after which clients ask again. */
  async #answered<T>(body: () => Promise<T>): Promise<T | TransactionError> {
    try {
      return await body()
    } catch (error) {
      this.#failed(error)
      return 'COORDINATOR_NOT_AVAILABLE'
    }
  }

  #failed(error: unknown): void {
    this.#ctx.events.error(error, 'storing a transaction')
  }
}
