/** More of the codecs than the load generator needs: groups and transactions. */
import { root } from '../built.ts'

async function message<T>(name: string): Promise<T> {
  return (await import(new URL(`dist/wire/messages/${name}.js`, root).href)) as T
}

type OffsetCommit = typeof import('../../../dist/wire/messages/08-offset-commit.js')
type OffsetFetch = typeof import('../../../dist/wire/messages/09-offset-fetch.js')
type JoinGroup = typeof import('../../../dist/wire/messages/11-join-group.js')
type Heartbeat = typeof import('../../../dist/wire/messages/12-heartbeat.js')
type LeaveGroup = typeof import('../../../dist/wire/messages/13-leave-group.js')
type SyncGroup = typeof import('../../../dist/wire/messages/14-sync-group.js')
type InitProducerId = typeof import('../../../dist/wire/messages/22-init-producer-id.js')
type AddPartitionsToTxn = typeof import('../../../dist/wire/messages/24-add-partitions-to-txn.js')
type EndTxn = typeof import('../../../dist/wire/messages/26-end-txn.js')

export const { offsetCommit } = await message<OffsetCommit>('08-offset-commit')
export const { offsetFetch } = await message<OffsetFetch>('09-offset-fetch')
export const { joinGroup } = await message<JoinGroup>('11-join-group')
export const { heartbeat } = await message<Heartbeat>('12-heartbeat')
export const { leaveGroup } = await message<LeaveGroup>('13-leave-group')
export const { syncGroup } = await message<SyncGroup>('14-sync-group')
export const { initProducerId } = await message<InitProducerId>('22-init-producer-id')
export const { addPartitionsToTxn } = await message<AddPartitionsToTxn>('24-add-partitions-to-txn')
export const { endTxn } = await message<EndTxn>('26-end-txn')
