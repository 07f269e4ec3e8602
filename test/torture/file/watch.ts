/** Hears from the engine what of the groups' places is stored: from then on no restart may undo it. */
import type { Broker } from '../../../src/broker.ts'
import type { MetaChange } from '../../../src/log/contract.ts'
import { FileMeta } from '../../../src/log/file/meta.ts'
import type { Clock } from '../../../src/model/clock.ts'
import { CARELESS_GROUP, groupOfKey, type StoredState } from './crew.ts'
import type { Ledger } from './ledger.ts'

const KEY = /^offset\/([^/]+)\/([^/]+)\/(\d+)$/
const put = FileMeta.prototype.put

/** Of whatever engine is asked from now on. `broker`: the one that stands on it, as soon as there is one. */
export function watchStores(ledger: Ledger, clock: Clock, broker: () => Broker | undefined): void {
  FileMeta.prototype.put = function (changes) {
    const stored = put.call(this, changes)
    // A turn later: what was stored together with a place, such as a transaction, has been written down by then.
    const heard = (): void => clock.nextTurn(() => tell(ledger, broker(), changes))
    stored.then(heard, () => undefined)
    return stored
  }
}

function tell(ledger: Ledger, broker: Broker | undefined, changes: readonly MetaChange[]): void {
  if (broker === undefined) return
  const names = new Map(broker.listTopics().map((name) => [broker.describe(name).id, name]))
  for (const [key, value] of changes) {
    const [, reader, topicId, partition] = KEY.exec(key) ?? []
    const topic = names.get(topicId ?? '')
    if (topic === undefined || reader === undefined || value === null) continue
    const { offset, settled } = value as StoredState
    const group = groupOfKey(decodeURIComponent(reader))
    // What is stored for it is what may be handed out, and a close takes that back.
    if (group === CARELESS_GROUP) continue
    ledger.history.commit(group, topic, Number(partition), offset)
    ledger.note({ fact: 'stored', group, topic, partition: Number(partition), offset, settled })
  }
}
