/**
 * One transaction of a producer that speaks Kafka's protocol: what is remembered of it, and how it changes. Pure: every
 * change is a new value, which the coordinator stores (producer-transactions.ts).
 *
 *              joined                    prepared                       completed
 *   Empty ──────────────► Ongoing ──────────────────► PrepareCommit ──────────────► CompleteCommit
 *     ▲                      ▲    └─────────────────► PrepareAbort  ──────────────► CompleteAbort
 *     │ identified           └───────────────────────────── joined ────────────────────┘ │
 *     └──────────────────────────────────────────────────────────────────────────────────┘
 *
 * A producer is an id and an epoch. Whoever names older ones is fenced. The epoch grows when somebody asks for the
 * transactional id, when the broker gives a transaction up, and with transactions v2 (KIP-890) at every end. A call whose
 * answer was lost comes again with what its producer was before: that is `previous`.
 */

export type TransactionPhase =
  | 'Empty'
  | 'Ongoing'
  | 'PrepareCommit'
  | 'PrepareAbort'
  | 'CompleteCommit'
  | 'CompleteAbort'

/** Kafka's names of what can be wrong. */
export type TransactionError =
  | 'CONCURRENT_TRANSACTIONS'
  | 'COORDINATOR_NOT_AVAILABLE'
  | 'INVALID_PRODUCER_ID_MAPPING'
  | 'INVALID_REQUEST'
  | 'INVALID_TRANSACTION_TIMEOUT'
  | 'INVALID_TXN_STATE'
  | 'PRODUCER_FENCED'
  | 'TRANSACTION_ABORTABLE'
  | 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED'

export interface ProducerIdentity {
  readonly producerId: number
  readonly epoch: number
}

/** Plain JSON. Times are milliseconds since the epoch, −1 for never. */
export interface ProducerTransaction extends ProducerIdentity {
  readonly phase: TransactionPhase
  readonly timeoutMs: number
  /** What it may write to: the names of topics, by `topicId/partition`. */
  readonly partitions: { readonly [key: string]: string }
  /** Groups that it may commit offsets of. */
  readonly groups: readonly string[]
  readonly startedAt: number
  readonly updatedAt: number
  /** What its producer was before its own last call changed that; null when somebody else changed it. */
  readonly previous: ProducerIdentity | null
  /** While it is prepared: the id that its producer goes on with at epoch 0, or −1 to keep the one it has. */
  readonly nextProducerId: number
}

/** The last epoch that a producer is given: one is left to fence it with. */
const LAST_EPOCH = 2 ** 15 - 2

export function partitionKey(topicId: string, partition: number): string {
  return `${topicId}/${partition}`
}

/** Of a transactional id that is new: nobody has been given epoch −1. */
export function unused(producerId: number, timeoutMs: number, now: number): ProducerTransaction {
  return {
    producerId,
    epoch: -1,
    phase: 'Empty',
    timeoutMs,
    partitions: {},
    groups: [],
    startedAt: -1,
    updatedAt: now,
    previous: null,
    nextProducerId: -1,
  }
}

/** Whether the epoch cannot grow for a producer any more, so that it needs another id. */
export function isExhausted({ epoch }: ProducerTransaction): boolean {
  return epoch >= LAST_EPOCH
}

export function isPrepared({ phase }: ProducerTransaction): boolean {
  return phase === 'PrepareCommit' || phase === 'PrepareAbort'
}

/** Whether what is prepared or complete is a commit. */
export function commits({ phase }: ProducerTransaction): boolean {
  return phase === 'PrepareCommit' || phase === 'CompleteCommit'
}

export function same(a: ProducerIdentity | null, b: ProducerIdentity | null): boolean {
  return a !== null && b !== null && a.producerId === b.producerId && a.epoch === b.epoch
}

/** What the producer is once a prepared transaction is complete, or now. */
export function identityOf(txn: ProducerTransaction): ProducerIdentity {
  if (txn.nextProducerId >= 0) return { producerId: txn.nextProducerId, epoch: 0 }
  return { producerId: txn.producerId, epoch: txn.epoch }
}

// ── InitProducerId ──────────────────────────────────────────────────────────────────────────────

/**
 * Somebody asks for the transactional id, and no transaction is under way. `given`: what it says it is (KIP-360), null
 * where it says nothing: then it is new, and fences whoever was there. `newId` is taken where the epochs are used up.
 */
export function identified(
  txn: ProducerTransaction,
  given: ProducerIdentity | null,
  newId: number,
): ProducerTransaction | TransactionError {
  if (given === null || txn.epoch === -1) return raised(txn, null, newId)
  if (same(given, txn)) return raised(txn, given, newId)
  return same(given, txn.previous) ? txn : 'PRODUCER_FENCED'
}

function raised(
  txn: ProducerTransaction,
  previous: ProducerIdentity | null,
  newId: number,
): ProducerTransaction {
  if (isExhausted(txn)) return { ...txn, producerId: newId, epoch: 0, previous }
  return { ...txn, epoch: txn.epoch + 1, previous }
}

/** Its producer is told who it is, and begins anew. */
export function emptied(txn: ProducerTransaction, timeoutMs: number, now: number): ProducerTransaction {
  return { ...txn, phase: 'Empty', timeoutMs, startedAt: -1, updatedAt: now }
}

// ── under way ───────────────────────────────────────────────────────────────────────────────────

/** Why `claim` may do nothing in it now; null where it may. */
export function refusal(txn: ProducerTransaction, claim: ProducerIdentity): TransactionError | null {
  if (claim.producerId !== txn.producerId) return 'INVALID_PRODUCER_ID_MAPPING'
  if (claim.epoch !== txn.epoch) return 'PRODUCER_FENCED'
  return isPrepared(txn) ? 'CONCURRENT_TRANSACTIONS' : null
}

export function hasPartition(txn: ProducerTransaction, key: string): boolean {
  return txn.phase === 'Ongoing' && Object.hasOwn(txn.partitions, key)
}

export function hasGroup(txn: ProducerTransaction, group: string): boolean {
  return txn.phase === 'Ongoing' && txn.groups.includes(group)
}

/** The same with more in it; the first of it begins the transaction. */
export function joined(
  txn: ProducerTransaction,
  more: { readonly partitions?: ProducerTransaction['partitions']; readonly group?: string },
  now: number,
): ProducerTransaction {
  const { partitions = {}, group } = more
  const added = group === undefined || txn.groups.includes(group) ? [] : [group]
  return {
    ...txn,
    phase: 'Ongoing',
    partitions: { ...txn.partitions, ...partitions },
    groups: [...txn.groups, ...added],
    startedAt: txn.phase === 'Ongoing' ? txn.startedAt : now,
    updatedAt: now,
  }
}

// ── the end ─────────────────────────────────────────────────────────────────────────────────────

/**
 * What an EndTxn of `claim` is about: an end, one that is done already, or a mistake. `raises`: transactions v2, where the
 * epoch grows with it. There a retry is told from the next end by its epoch, and there may be nothing to abort, since the
 * producer does not know whether its first batch has arrived.
 */
export function endOf(
  txn: ProducerTransaction,
  claim: ProducerIdentity,
  commit: boolean,
  raises: boolean,
): 'end' | 'done' | TransactionError {
  const again = raises && same(claim, txn.previous)
  if (!again) {
    if (claim.producerId !== txn.producerId) return 'INVALID_PRODUCER_ID_MAPPING'
    if (claim.epoch !== txn.epoch) return 'PRODUCER_FENCED'
  }
  const isRetry = raises ? again : txn.phase !== 'Ongoing' && txn.phase !== 'Empty'
  if (isRetry) return endAgain(txn, commit)
  if (isPrepared(txn)) return 'PRODUCER_FENCED'
  if (txn.phase === 'Ongoing') return 'end'
  return raises && !commit ? 'end' : 'INVALID_TXN_STATE'
}

function endAgain(txn: ProducerTransaction, commit: boolean): 'done' | TransactionError {
  if (txn.phase === 'Ongoing' || txn.phase === 'Empty') return 'PRODUCER_FENCED'
  if (commit !== commits(txn)) return 'INVALID_TXN_STATE'
  return isPrepared(txn) ? 'CONCURRENT_TRANSACTIONS' : 'done'
}

/** How a transaction ends. */
export interface End {
  readonly commit: boolean
  /** The epoch grows: with transactions v2, and where its producer is fenced. */
  readonly raises: boolean
  /** The producer that asked for it, where it did. */
  readonly by: ProducerIdentity | null
  /** What it goes on with if the epoch cannot grow, or −1. */
  readonly newId: number
}

/** It is decided. What is still to be written carries the epoch that this one has. */
export function prepared(
  txn: ProducerTransaction,
  { commit, raises, by, newId }: End,
  now: number,
): ProducerTransaction {
  return {
    ...txn,
    phase: commit ? 'PrepareCommit' : 'PrepareAbort',
    epoch: raises ? txn.epoch + 1 : txn.epoch,
    updatedAt: now,
    previous: raises ? by : txn.previous,
    nextProducerId: raises && isExhausted(txn) ? newId : -1,
  }
}

/** Everything of it is written. */
export function completed(txn: ProducerTransaction, now: number): ProducerTransaction {
  return {
    ...txn,
    ...identityOf(txn),
    phase: commits(txn) ? 'CompleteCommit' : 'CompleteAbort',
    partitions: {},
    groups: [],
    updatedAt: now,
    nextProducerId: -1,
  }
}
