import { describe, expect, it } from 'vitest'
import { OdradekError } from '../../src/model/errors.ts'
import { DONE, outcomeOf, Refusal, repeated, within } from '../../src/server/admin-errors.ts'
import { brokersAt } from '../../src/server/topic-view.ts'
import { kafkaErrorName } from '../../src/wire/errors.ts'
import { KafkaWorld } from '../support/kafka.ts'
import { watch } from '../support/world.ts'

describe('what administration is refused with', () => {
  it.each([
    ['CLOSED', 'NOT_CONTROLLER'],
    ['INVALID_ARGUMENT', 'INVALID_CONFIG'],
    ['INVALID_TOPIC', 'INVALID_TOPIC_EXCEPTION'],
    ['OUTCOME_UNKNOWN', 'KAFKA_STORAGE_ERROR'],
    ['STORAGE_FULL', 'KAFKA_STORAGE_ERROR'],
    ['TOPIC_EXISTS', 'TOPIC_ALREADY_EXISTS'],
    ['UNKNOWN_TOPIC', 'UNKNOWN_TOPIC_OR_PARTITION'],
  ] as const)('is for %s %s, in the words of the broker', (code, name) => {
    const { errorCode, errorMessage } = outcomeOf(new OdradekError(code, 'the reason'))
    expect(kafkaErrorName(errorCode)).toBe(name)
    expect(errorMessage).toBe('the reason')
  })

  it('is what the handler says where it says so itself', () => {
    expect(outcomeOf(new Refusal('INVALID_REQUEST', 'why'))).toEqual({ errorCode: 42, errorMessage: 'why' })
    expect(
      kafkaErrorName(outcomeOf(new OdradekError('INVALID_ARGUMENT', ''), 'INVALID_PARTITIONS').errorCode),
    ).toBe('INVALID_PARTITIONS')
  })

  it('is nothing where the fault is ours: that is thrown on', () => {
    const faults = [new TypeError('ours'), new OdradekError('CORRUPT_LOG', 'not of this kind'), undefined]
    for (const fault of faults) {
      let thrown: unknown = 'nothing'
      try {
        outcomeOf(fault)
      } catch (error) {
        thrown = error
      }
      expect(thrown).toBe(fault)
    }
  })

  it('is that the broker closes, where it does', async () => {
    const { kafka, broker } = new KafkaWorld()
    await kafka.configs.create('t', 1)
    await broker.close()
    const outcome = await kafka.configs.alter('t', (set) => set).then(() => DONE, outcomeOf)
    expect(kafkaErrorName(outcome.errorCode)).toBe('NOT_CONTROLLER')
  })
})

describe('within', () => {
  it('leaves no timer behind, whatever comes of the work', async () => {
    const { clock, broker } = new KafkaWorld()
    const { ctx } = broker.parts
    const before = clock.pending
    expect(await within(ctx, 100, Promise.resolve(DONE), (late) => late)).toBe(DONE)
    const failing = within(ctx, 100, Promise.reject(new Error('no')), (late) => late)
    await expect(failing).rejects.toThrow('no')
    await clock.advance(100)
    expect(clock.pending).toBe(before)
  })

  it('never ends the wait of a client that gives no time', async () => {
    const { clock, broker } = new KafkaWorld()
    const watched = watch(within(broker.parts.ctx, -1, new Promise<typeof DONE>(() => {}), (late) => late))
    await clock.advance(1_000_000)
    expect(watched.state).toBe('waiting')
  })

  it('is not disturbed by work that fails when it is late already', async () => {
    const { clock, broker } = new KafkaWorld()
    let fail = (_: Error): void => {}
    const work = new Promise<typeof DONE>((_, reject) => {
      fail = reject
    })
    const answered = within(broker.parts.ctx, 100, work, (late) => late)
    await clock.advance(100)
    expect(kafkaErrorName((await answered).errorCode)).toBe('REQUEST_TIMED_OUT')
    fail(new Error('late'))
    await clock.settle()
  })
})

describe('repeated', () => {
  it('finds what is there more than once, once', () => {
    expect(repeated(['a', 'b', 'a', 'c', 'a', 'c'])).toEqual(new Set(['a', 'c']))
  })
})

describe('brokersAt', () => {
  it('leaves out brokers that a listener does not reach', () => {
    const { kafka } = new KafkaWorld({ nodes: 2 })
    expect(brokersAt('PLAINTEXT', kafka).map(({ id }) => id)).toEqual([0, 1])
    expect(brokersAt('INTERNAL', kafka)).toEqual([])
  })
})
