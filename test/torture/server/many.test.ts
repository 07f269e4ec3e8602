/** The short form of `npm run torture -- --many`: what is bounded by counting, without looking at the time. */
import { describe, expect, it } from 'vitest'
import { handler } from '../../../src/server/handler.ts'
import { HANDLERS } from '../../../src/server/handlers.ts'
import { describeGroups } from '../../../src/wire/messages/15-describe-groups.ts'
import { allWide, ask, isTooLarge } from './many.ts'

const COUNT = 2_000

describe('a request that names 2,000 things', () => {
  it.each(HANDLERS.map((each) => [each.api.name, each] as const))(
    'of %s is answered with no more than 64 times as much, or refused',
    async (_, which) => {
      for (const [each, ordinal] of allWide(COUNT)) {
        if (each !== which) continue
        const asked = await ask(each, ordinal, COUNT)
        expect(isTooLarge(asked), JSON.stringify(asked)).toBe(false)
      }
    },
    60_000,
  )

  it('is found out where an answer repeats what is large', async () => {
    const repeats = handler(describeGroups, ({ groups }) => ({
      throttleTimeMs: 0,
      groups: groups.map((groupId) => ({
        errorCode: 0,
        groupId,
        groupState: 'Stable',
        protocolType: 'consumer',
        protocolData: 'x'.repeat(1_000),
        members: [],
      })),
    }))
    const asked = await ask(repeats, 0, COUNT, [repeats])
    expect(isTooLarge(asked)).toBe(true)
  }, 60_000)
})
