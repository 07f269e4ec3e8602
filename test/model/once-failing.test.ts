/**
 * Programs that found a fault which no shorter story shows, shrunk. What they leave out is the simplest that
 * there is.
 */
import { expect, it } from 'vitest'
import type { HandlerPlan, MemberPlan, Program, ReaderPlan, Step, TopicPlan } from './program.ts'
import { Runner } from './runner.ts'

const TOPIC: TopicPlan = {
  partitions: 1,
  records: 2,
  bytes: 1_000_000,
  ageMs: 0,
  dedupe: false,
  publishTimeoutMs: 45,
  maxWaiting: 100,
}

const READER: Omit<ReaderPlan, 'members'> = {
  kind: 'group',
  target: 0,
  overflow: 'wait',
  maxLagRecords: 0,
  maxLagBytes: 0,
  guarantee: 'at-least-once',
  order: 'partition',
  assignment: 'shared',
  strategy: 'round-robin',
  attempts: 1,
  delayMs: 0,
  deadLetter: 'default',
  graceMs: 0,
  from: 'earliest',
}

function memberThat(...outcomes: HandlerPlan['outcome'][]): MemberPlan {
  return {
    manualAck: false,
    concurrency: 1,
    ackTimeoutMs: 30,
    batch: 0,
    lingerMs: 0,
    manualCredit: false,
    object: false,
    weight: 1,
    script: outcomes.map((outcome) => ({ outcome, ms: 0, step: null })),
  }
}

function step(kind: Step['kind'], a = 0, b = 0, c = 0): Step {
  return { kind, a, b, c, hasty: false }
}

const WORLD = { letters: 0, jitter: false, durable: false, misses: 0 } as const

const PROGRAMS: readonly { readonly title: string; readonly program: Program }[] = [
  {
    title: 'a publisher that was let in while it asked for room is let in once',
    program: {
      world: {
        ...WORLD,
        topics: [{ ...TOPIC, partitions: 3 }],
        readers: [
          {
            ...READER,
            order: 'none',
            strategy: 'first',
            attempts: 2,
            delayMs: 10,
            members: [memberThat('publish', 'batch error'), memberThat('return')],
          },
          {
            ...READER,
            overflow: 'drop-newest',
            maxLagRecords: 1,
            attempts: 2,
            delayMs: 50,
            members: [memberThat('throw'), memberThat('publish')],
          },
        ],
      },
      steps: [
        step('publish'),
        step('publish'),
        step('publish'),
        step('reset', 135, 115, 182),
        step('publish'),
      ],
    },
  },
]

it.each(PROGRAMS)('$title', async ({ program }) => {
  expect(await new Runner(program).run()).toEqual([])
})
