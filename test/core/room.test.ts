/** Room that a reader makes only when it is asked is room all the same. */
import { expect, it } from 'vitest'
import type { DeliveryStrategy } from '../../src/model/options.ts'
import { World } from '../support/world.ts'

const LARGE = 'x'.repeat(40)

it('lets a publisher in where a drop-newest reader finds out just then what it missed', async () => {
  const { broker, settle } = new World()
  await broker.createTopic('orders', { retention: { records: 3 } })
  let calls = 0
  await broker.subscribe(
    'orders',
    (d) => (calls++ === 0 ? void d.publish('orders', LARGE) : new Promise(() => {})),
    { id: 'slow' },
  )
  const strategy: DeliveryStrategy = { select: (_record, _members, { all }) => all[0] ?? 'hold' }
  const first = await broker.subscribe('orders', () => {}, {
    group: 'newest',
    strategy,
    order: 'partition',
    overflow: 'drop-newest',
    maxLag: { bytes: 150 },
    credit: 'manual',
  })
  await broker.subscribe('orders', () => {}, { group: 'newest' })
  await broker.publishAll('orders', [{ value: LARGE }, { value: LARGE }])
  await settle()
  expect(broker.tryPublish('orders', LARGE)).toEqual({ partition: 0, offset: 3 })
  await settle()
  expect(first.describe().counters.dropped).toBe(3)
})
