/**
 * What a Kafka client is tried with. The other side of each trial is in this process: what a client produced is read
 * through the broker's own verbs, and what it is to consume was published by them, so a fault that client and server
 * share does not hide.
 */
import type { Feature } from './feature.ts'
import { ADMIN } from './features-admin.ts'
import { CONSUMING } from './features-consume.ts'
import { GROUPS } from './features-groups.ts'
import { LASTING } from './features-lasting.ts'
import { PRODUCING } from './features-produce.ts'
import { SECURITY } from './features-security.ts'
import { TRANSACTIONS } from './features-transactions.ts'

export const FEATURES: readonly Feature[] = [
  ...PRODUCING,
  ...CONSUMING,
  ...GROUPS,
  ...TRANSACTIONS,
  ...ADMIN,
  ...LASTING,
  ...SECURITY,
]
