/**
 * Who in a shared group gets a record: a delivery strategy decides. Four are built in, and an object with one
 * method `select` is a fifth. A busy member never holds up the others: only who has room is asked about.
 */
import { type Delivery, type DeliveryStrategy, openBroker } from 'odradek'

await using broker = await openBroker()

/** Publishes `keys` to a group with these members and says who got what. */
async function run(
  title: string,
  strategy: DeliveryStrategy | 'round-robin' | 'least-in-flight' | 'weighted' | 'sticky-key',
  members: readonly { id: string; weight?: number }[],
  keys: readonly string[],
): Promise<void> {
  const topic = await broker.createTopic<string>(`topic-${title.replaceAll(' ', '-')}`)
  const got = new Map<string, string[]>()
  for (const member of members) {
    const list: string[] = []
    got.set(member.id, list)
    const handler = (d: Delivery<string>): void => void list.push(d.value)
    await topic.subscribe(handler, { ...member, group: title, strategy })
  }
  for (const key of keys) await topic.publish(key, { key })
  await broker.idle()
  console.log(title)
  for (const [id, list] of got) console.log(`  ${id.padEnd(8)} ${list.join(' ')}`)
}

const letters = ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd']
const two = [{ id: 'anna' }, { id: 'boris' }]
await run('round-robin', 'round-robin', two, letters)
await run(
  'weighted',
  'weighted',
  [
    { id: 'big', weight: 3 },
    { id: 'small', weight: 1 },
  ],
  letters,
)
await run('sticky-key', 'sticky-key', two, letters)

/** Keys begin with a region; each member is for one. While it is busy, or away, the record waits for it. */
const byRegion: DeliveryStrategy = {
  select(record, members, state) {
    const region = String(record.key).slice(0, 2)
    const owner = state.all.find((member) => member.id === region)
    if (owner === undefined) return members[0] ?? 'hold'
    return owner.free ? owner : 'hold'
  },
}
await run(
  'by region',
  byRegion,
  [{ id: 'eu' }, { id: 'us' }],
  ['eu-1', 'us-1', 'eu-2', 'us-2', 'eu-3', 'jp-1'],
)
