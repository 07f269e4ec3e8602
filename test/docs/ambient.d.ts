/** What the blocks of the documentation that are not run may use without saying where it comes from. */
import type { Broker as OdradekBroker, TopicHandle as OdradekTopicHandle } from 'odradek'

declare global {
  interface Order {
    readonly id: string
    readonly customer: string
    readonly amount: number
  }
  const broker: OdradekBroker
  const orders: OdradekTopicHandle<Order>
  const order: Order
  function save(order: unknown, options?: { signal?: AbortSignal }): Promise<void>
}
