import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { OdradekError } from '../../src/model/errors.ts'
import type { StandardResult, StandardSchemaV1 } from '../../src/model/standard-schema.ts'
import { wireBatchOf } from '../../src/testing/conformance/kit.ts'
import { codeOf, codeThrown, Hands, World } from '../support/world.ts'

function schemaOf(
  validate: (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>>,
): StandardSchemaV1 {
  return { '~standard': { version: 1, vendor: 'test', validate } }
}

const LIBRARIES: readonly (readonly [string, StandardSchemaV1<unknown, { id: string; items: number[] }>])[] =
  [
    ['zod', z.object({ id: z.string(), items: z.array(z.coerce.number()) }) as never],
    [
      'valibot',
      v.object({
        id: v.string(),
        items: v.array(v.pipe(v.unknown(), v.transform(Number), v.number())),
      }) as never,
    ],
  ]

describe.each(LIBRARIES)('a schema of %s', (_, schema) => {
  it('runs at publish, and its output is what is stored', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { schema })
    const input = { id: 'a', items: ['1', '2'], extra: true } as unknown as { id: string; items: number[] }
    await topic.publish(input)
    topic.tryPublish(input)
    await topic.publishAll([{ value: input }])
    await broker.transaction((tx) => tx.publish('t', input))
    const stored = (await broker.read('t')).map((record) => record.value)
    expect(stored).toHaveLength(4)
    for (const value of stored) expect(value).toEqual({ id: 'a', items: [1, 2] })
  })

  it('refuses what does not fit as INVALID_VALUE that names the place, and stores nothing', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { schema })
    const bad = { id: 7, items: [1] } as unknown as { id: string; items: number[] }
    const error = await topic.publish(bad).catch((reason: unknown) => reason as OdradekError)
    expect(error).toBeInstanceOf(OdradekError)
    expect(error).toMatchObject({ code: 'INVALID_VALUE', retriable: false })
    expect((error as OdradekError).message).toContain('id: ')
    expect((error as OdradekError).cause).toMatchObject([{ path: expect.anything() }])
    expect(codeThrown(() => topic.tryPublish(bad))).toBe('INVALID_VALUE')
    expect(await codeOf(topic.publishAll([{ value: { id: 'a', items: [] } }, { value: bad }]))).toBe(
      'INVALID_VALUE',
    )
    expect(await codeOf(broker.transaction((tx) => tx.publish('t', bad)))).toBe('INVALID_VALUE')
    expect(topic.describe().partitions[0]?.end).toBe(0)
  })
})

describe('a schema', () => {
  it('is not asked about a tombstone', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { schema: schemaOf(() => ({ issues: [{ message: 'no' }] })) })
    expect(await codeOf(topic.publish(null))).toBe('resolved with {"partition":0,"offset":0}')
  })

  it('cannot make a value undefined', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { schema: schemaOf(() => ({ value: undefined })) })
    expect(await codeOf(topic.publish('a'))).toBe('INVALID_VALUE')
  })

  it('that throws makes the value invalid, and is the cause', async () => {
    const { broker } = new World()
    const fault = new Error('broken schema')
    const schema = schemaOf(() => {
      throw fault
    })
    const topic = await broker.createTopic('t', { schema })
    const error = await topic.publish('a').catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'INVALID_VALUE', cause: fault })
  })

  it.each([
    ['resolves', () => Promise.resolve({ value: 1 })],
    ['rejects', () => Promise.reject(new Error('too late'))],
  ])('that validates asynchronously and %s is UNSUPPORTED', async (_, validate) => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { schema: schemaOf(validate) })
    expect(await codeOf(topic.publish('a'))).toBe('UNSUPPORTED')
    expect(topic.describe().partitions[0]?.end).toBe(0)
  })

  it('must be one', async () => {
    const { broker } = new World()
    for (const schema of [{}, { '~standard': {} }, () => true, 'string']) {
      const options = { schema: schema as unknown as StandardSchemaV1 }
      expect(await codeOf(broker.createTopic('t', options))).toBe('INVALID_ARGUMENT')
    }
  })

  it('says up to three faults, and where they are', async () => {
    const { broker } = new World()
    const issues = [
      { message: 'top' },
      { message: 'inside', path: ['a', { key: 0 }, 'b'] },
      { message: 'empty path', path: [] },
      { message: 'a fourth' },
    ]
    const topic = await broker.createTopic('t', { schema: schemaOf(() => ({ issues })) })
    const error = await topic.publish('a').catch((reason: unknown) => reason as Error)
    expect((error as Error).message).toMatch(/: top; a\.0\.b: inside; empty path$/)
  })
})

describe('records from the wire', () => {
  it('are validated at delivery; a failure goes straight to the dead letters, the rest is delivered', async () => {
    const world = new World()
    const schema = schemaOf((value) =>
      value instanceof Uint8Array && value[0] === 1
        ? { value }
        : { issues: [{ message: 'must begin with 1' }] },
    )
    await world.broker.createTopic('t', { schema })
    const hands = new Hands()
    await world.broker.subscribe('t', hands.take, { id: 'a', ack: 'manual', order: 'none', concurrency: 9 })
    const rows = [[1], [2], [1, 1]].map((bytes) => ({ value: new Uint8Array(bytes) }))
    expect(world.logs.get('t/0')?.tryAppend(wireBatchOf([...rows, { value: null }]))).toMatchObject({
      base: 0,
    })
    await world.settle()
    expect(hands.values).toEqual([new Uint8Array([1]), new Uint8Array([1, 1]), null])
    const [letter, ...more] = await world.broker.read('dlq.t')
    expect(more).toEqual([])
    expect(letter?.value).toEqual(new Uint8Array([2]))
    expect(letter?.headers.get('__dlq.errors.message')).toContain('must begin with 1')
    expect(world.raised('deadLetter')).toMatchObject([{ topic: 't', offset: 1, attempts: 1, reader: 'a' }])
  })
})
