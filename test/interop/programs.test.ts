/** Apache Kafka's own programs, and Kafka Streams, unmodified. */
import { afterAll, describe, it } from 'vitest'
import { Outcomes } from './outcomes.ts'
import { withoutPrograms } from './program.ts'
import { PROGRAMS } from './programs.ts'
import { STREAMS } from './streams.ts'
import { Trial } from './trial.ts'

const outcomes = new Outcomes('programs', 'Apache Kafka 4.1.1')
const missing = withoutPrograms()
afterAll(() => outcomes.write())

describe.concurrent('Apache Kafka 4.1.1', () => {
  for (const { name, run } of [...PROGRAMS, STREAMS]) {
    outcomes.note(name, missing === undefined ? 'failed' : 'missing', missing ?? 'it did not end')
    it.skipIf(missing !== undefined)(name, { timeout: 240_000 }, () =>
      outcomes.noting(name, async () => {
        const trial = await Trial.open(undefined, undefined, { durable: true })
        await run(trial).finally(() => trial.close())
      }),
    )
  }
})
