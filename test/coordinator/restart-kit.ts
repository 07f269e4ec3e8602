/** Clients that meet the next process of their broker, and what they were told. */
import { assignedTopics } from '../../src/wire/consumer-protocol.ts'
import { GroupClient, type Synced } from '../support/group-client.ts'
import type { KafkaWorld } from '../support/kafka.ts'
import { ModernClient } from '../support/modern-client.ts'

const BEFORE_MEMBER_ID_REQUIRED = 3

/** The same clients, at another broker. */
export function moved<C extends GroupClient | ModernClient>(clients: readonly C[], world: KafkaWorld): C[] {
  return clients.map((client): C => {
    if (client instanceof ModernClient) {
      const { memberId, memberEpoch, owned } = client
      return Object.assign(new ModernClient(world, client), { memberId, memberEpoch, owned }) as C
    }
    const { memberId, generation } = client
    return Object.assign(new GroupClient(world, client), { memberId, generation }) as C
  })
}

/** All join and sync, the first one with an even share of six partitions for each, in their order. */
export async function rebalance(clients: readonly GroupClient[], count = 6): Promise<number[][]> {
  // Those that are new come first, as they are taken, and the leader next: a rebalance is under way for whoever joins again.
  const late = clients.filter(({ memberId }) => memberId === '')
  const known = clients.filter(({ memberId }) => memberId !== '')
  await Promise.all([
    ...late.map((client) =>
      client.join({}, client.instanceId === null ? BEFORE_MEMBER_ID_REQUIRED : undefined),
    ),
    ...known.map((client) => client.join()),
  ])
  const shares = clients.map(({ memberId }, i) => {
    const from = Math.ceil((count * i) / clients.length)
    const to = Math.ceil((count * (i + 1)) / clients.length)
    const partitions = Array.from({ length: to - from }, (_, p) => from + p)
    return [memberId, [['orders', partitions]]] as const
  })
  return (await Promise.all(clients.map((client) => client.sync(shares)))).map(assigned)
}

/** The same, where several may be new: they come one after the other. */
export async function formed(clients: readonly GroupClient[]): Promise<number[][]> {
  const known = clients.filter(({ memberId }) => memberId !== '')
  const all = [...known, ...clients.filter((client) => !known.includes(client))]
  let parts: number[][] = []
  for (let count = Math.max(known.length, 1); count <= all.length; count++) {
    parts = await rebalance(all.slice(0, count))
  }
  return parts
}

export function assigned({ assignment }: Synced): number[] {
  return assignedTopics(assignment).flatMap(({ partitions }) => partitions)
}
