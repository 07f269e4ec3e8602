/**
 * What the public types promise. `// @ts-expect-error` marks what must not compile: it is itself an error
 * where the next line does compile. Nothing here runs.
 */

import type { StandardSchemaV1 as OfficialSchema } from '@standard-schema/spec'
import * as v from 'valibot'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import type {
  BatchSubscriber,
  Broker,
  CloseResult,
  Delivery,
  DeliveryBatch,
  ErrorCode,
  Key,
  LogRecord,
  Published,
  RecordHeaders,
  RecordStream,
  StandardSchemaV1,
  SubscribeOptions,
  Subscriber,
  Subscription,
  TopicHandle,
  TopicOptions,
} from '../../src/index.ts'
import { BatchError, OdradekError, openBroker } from '../../src/index.ts'
import { createBroker } from '../../src/memory.ts'

interface Order {
  readonly customerId: string
  readonly total: number
}
interface Topics {
  orders: Order
  audit: string
}
declare const order: Order

// ── a broker that knows its topics ──────────────────────────────────────────────────────────────

expectTypeOf(openBroker<Topics>()).toEqualTypeOf<Promise<Broker<Topics>>>()
expectTypeOf(createBroker<Topics>()).toEqualTypeOf<Broker<Topics>>()

export async function typedTopics(broker: Broker<Topics>): Promise<void> {
  expectTypeOf(await broker.createTopic('orders')).toEqualTypeOf<TopicHandle<Order>>()
  expectTypeOf(broker.topic('audit')).toEqualTypeOf<TopicHandle<string>>()
  // @ts-expect-error no such topic
  await broker.createTopic('order')

  expectTypeOf(broker.publish('orders', order)).toEqualTypeOf<Promise<Published>>()
  expectTypeOf(broker.tryPublish('audit', 'seen')).toEqualTypeOf<Published | undefined>()
  await broker.publishAll('orders', [{ value: order, key: 'k' }, { value: order }])
  // @ts-expect-error an order is no line of the audit
  await broker.publish('audit', order)
  // @ts-expect-error no such topic
  await broker.publish('orderz', order)
  // @ts-expect-error one of the values is no order
  await broker.publishAll('orders', [{ value: order }, { value: 'order' }])

  await broker.subscribe('orders', (delivery) => {
    expectTypeOf(delivery).toEqualTypeOf<Delivery<Order>>()
  })
  await broker.subscribe('orders.*', (delivery) => {
    expectTypeOf(delivery.value).toEqualTypeOf<unknown>()
  })
  expectTypeOf(broker.stream('audit')).toEqualTypeOf<RecordStream<string>>()
  expectTypeOf(await broker.read('orders')).toEqualTypeOf<LogRecord<Order>[]>()

  await broker.resetOffset('orders', 'alice', 'earliest')
  await broker.resetOffset('orders', { group: 'shippers' }, new Date('2026-01-01'))
  await broker.resetOffset('orders', { id: 'alice' }, { 0: 10, 3: 7 })
  // @ts-expect-error no such place
  await broker.resetOffset('orders', 'alice', 'oldest')
  // @ts-expect-error no such topic
  await broker.unsubscribe('order', 'alice')
}

// ── a broker that does not ──────────────────────────────────────────────────────────────────────

export async function untypedTopics(): Promise<void> {
  await using broker = await openBroker()
  const orders = await broker.createTopic<Order>('orders', { partitions: 4 })
  expectTypeOf(orders).toEqualTypeOf<TopicHandle<Order>>()
  expectTypeOf(await broker.createTopic('any')).toEqualTypeOf<TopicHandle<unknown>>()
  await broker.publish('whatever', { free: true })
  expectTypeOf(await broker.close()).toEqualTypeOf<CloseResult>()
}

// ── publishing ──────────────────────────────────────────────────────────────────────────────────

export async function publishing(orders: TopicHandle<Order>, headers: RecordHeaders): Promise<void> {
  const { partition, offset, duplicate } = await orders.publish(order, {
    key: order.customerId,
    headers: { trace: 'a', many: ['b', new Uint8Array(1), null], absent: undefined },
  })
  expectTypeOf(partition).toEqualTypeOf<number>()
  expectTypeOf(offset).toEqualTypeOf<number>()
  expectTypeOf(duplicate).toEqualTypeOf<true | undefined>()
  await orders.publish(order, { key: new Uint8Array(2), headers, signal: AbortSignal.timeout(1) })
  // @ts-expect-error what is published is an order
  await orders.publish({ customerId: 'c' })
  // @ts-expect-error keys are strings or bytes
  await orders.publish(order, { key: 7 })
  // @ts-expect-error it does not wait, so there is nothing to abort
  orders.tryPublish(order, { signal: AbortSignal.timeout(1) })
}

// ── subscribing ─────────────────────────────────────────────────────────────────────────────────

export async function subscribing(orders: TopicHandle<Order>): Promise<void> {
  const subscription = await orders.subscribe(async (delivery) => {
    expectTypeOf(delivery).toEqualTypeOf<Delivery<Order>>()
  })
  expectTypeOf(subscription).toEqualTypeOf<Subscription>()
  expectTypeOf(subscription).toExtend<AsyncDisposable>()

  const shippers = {
    group: 'shippers',
    retry: { attempts: 5, delayMs: 50, maxDelayMs: 1_000 },
    deadLetter: 'dlq.orders',
    order: 'key',
    overflow: 'wait',
  } as const satisfies SubscribeOptions
  await orders.subscribe(() => {}, { id: 'worker-1', ...shippers, concurrency: 16 })
  await orders.subscribe(() => {}, { id: 'worker-2', ...shippers, ack: 'manual', ackTimeoutMs: 30_000 })

  await orders.subscribe(
    (batch) => {
      expectTypeOf(batch).toEqualTypeOf<DeliveryBatch<Order>>()
      for (const delivery of batch) expectTypeOf(delivery).toEqualTypeOf<Delivery<Order>>()
      throw new BatchError(0, new Error('the first one'))
    },
    { batch: 100 },
  )
  await orders.subscribe(
    { onMessage: (batch: DeliveryBatch<Order>) => batch.ack() },
    { batch: { records: 9 } },
  )

  class Audit implements Subscriber<Order>, Partial<BatchSubscriber<Order>> {
    onMessage(delivery: Delivery<Order> | DeliveryBatch<Order>): boolean {
      return 'attempt' in delivery
    }
  }
  await orders.subscribe(new Audit(), { id: 'audit' })

  // @ts-expect-error no such policy
  await orders.subscribe(() => {}, { overflow: 'drop' })
  // @ts-expect-error no such assignment
  await orders.subscribe(() => {}, { group: 'g', assignment: 'random' })
  // @ts-expect-error a dead-letter topic, or none: `true` says nothing
  await orders.subscribe(() => {}, { deadLetter: true })
  // @ts-expect-error a handler of strings on a topic of orders
  await orders.subscribe((delivery: Delivery<string>) => delivery.value)
  // @ts-expect-error the original options had units missing
  await orders.subscribe(() => {}, { ackTimeout: 30_000 })
}

export async function pulling(orders: TopicHandle<Order>, signal: AbortSignal): Promise<void> {
  for await (const delivery of orders.stream({ from: 'earliest', signal })) {
    expectTypeOf(delivery).toEqualTypeOf<Delivery<Order>>()
  }
  // @ts-expect-error a stream acks by itself
  orders.stream({ ack: 'manual' })
}

export function settling(delivery: Delivery<Order>): void {
  expectTypeOf(delivery.key).toEqualTypeOf<Key | null>()
  expectTypeOf(delivery.ack()).toEqualTypeOf<boolean>()
  expectTypeOf(delivery.nack({ delayMs: 5, reason: 'busy' })).toEqualTypeOf<boolean>()
  expectTypeOf(delivery.reject('spoilt')).toEqualTypeOf<boolean>()
  expectTypeOf(delivery.extend(1_000)).toEqualTypeOf<boolean>()
  expectTypeOf(delivery.publish('next', 1)).toEqualTypeOf<Promise<Published>>()
  // @ts-expect-error the envelope is read-only
  delivery.offset = 0
}

// ── schemas ─────────────────────────────────────────────────────────────────────────────────────

// Ours is the part of the official interface that is used: whoever honours that one honours ours.
expectTypeOf<OfficialSchema<unknown, Order>>().toExtend<StandardSchemaV1<unknown, Order>>()
expectTypeOf({
  schema: z.object({ customerId: z.string(), total: z.number() }),
}).toExtend<TopicOptions<Order>>()
expectTypeOf({
  schema: v.object({ customerId: v.string(), total: v.number() }),
}).toExtend<TopicOptions<Order>>()
expectTypeOf({ schema: z.object({ customerId: z.string() }) }).not.toExtend<TopicOptions<Order>>()

// ── errors and events ───────────────────────────────────────────────────────────────────────────

export function errors(error: unknown): void {
  if (!(error instanceof OdradekError)) return
  expectTypeOf(error.code).toEqualTypeOf<ErrorCode>()
  expectTypeOf(error.retriable).toEqualTypeOf<boolean>()
  expectTypeOf<'FULL'>().toExtend<ErrorCode>()
  // @ts-expect-error no such code
  void (error.code === 'TOO_FULL')
}

export function events(broker: Broker): void {
  const stop = broker.on('deadLetter', (event) => {
    expectTypeOf(event.offset).toEqualTypeOf<number>()
    expectTypeOf(event.deadLetterTopic).toEqualTypeOf<string | null>()
  })
  expectTypeOf(stop).toEqualTypeOf<() => void>()
  broker.on('error', ({ error, context }) => console.log(error.message, context))
  // @ts-expect-error no such event
  broker.on('died', () => {})
}
