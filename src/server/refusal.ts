/**
 * A client that is not let in: the log is told, and the client has to wait before it is, so that guessing is slow
 * (Kafka's connection.failed.authentication.delay.ms). Its connection takes nothing more, and closes with the answer.
 */
import type { CoreContext } from '../core/context.ts'
import { pause } from './pause.ts'
import type { Session } from './session.ts'

export const FAILED_AUTHENTICATION_DELAY_MS = 100

/** Resolves when the answer may leave. */
export async function refusal(
  session: Session,
  { due, logger }: Pick<CoreContext, 'due' | 'logger'>,
  reason: string,
): Promise<void> {
  const { host, door, signal } = session
  logger.warn(
    { client: host, listener: door.listener, ...session.sasl?.about, reason },
    'a client is not let in',
  )
  await pause(due, FAILED_AUTHENTICATION_DELAY_MS, signal)
  session.refuse()
}
