/**
 * A topic with a schema takes nothing else. Any Standard Schema will do (zod here; valibot and ArkType as well),
 * as long as it validates synchronously. What the schema makes of a value, defaults included, is what is stored.
 */
import { OdradekError, openBroker } from 'odradek'
import { z } from 'zod'

const Order = z.object({
  id: z.string().regex(/^o-\d+$/),
  amount: z.number().positive(),
  currency: z.enum(['EUR', 'USD']).default('EUR'),
})
type Order = z.output<typeof Order>

await using broker = await openBroker()
const orders = await broker.createTopic<Order>('orders', { schema: Order })
await orders.subscribe((d) => console.log(`received ${JSON.stringify(d.value)}`), { id: 'shop' })

// From a form, a queue, another team: typed as nothing in particular.
const incoming: unknown[] = [
  { id: 'o-1', amount: 10 },
  { id: 'o-2', amount: -3, currency: 'GBP' },
  { id: 'o-3', amount: 5, currency: 'USD', note: 'unknown fields are dropped by this schema' },
]
for (const value of incoming) {
  try {
    await orders.publish(value as Order)
  } catch (error) {
    if (!(error instanceof OdradekError)) throw error
    console.log(`refused  ${error.code}: ${error.message}`)
    console.log(`         ${(error.cause as unknown[]).length} issues in error.cause`)
  }
}
await broker.idle()
