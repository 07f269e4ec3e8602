/**
 * SaslAuthenticate: one token of the mechanism that SaslHandshake named, and the answer to it (KIP-152).
 *
 * Version 1 says how long the client is believed: 0, for as long as it is connected (KIP-368 is not offered). A client
 * that is not believed is told so, a little later, and its connection is closed: whoever guesses has to wait.
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { saslAuthenticate as api } from '../../wire/messages/36-sasl-authenticate.ts'
import { type Handler, handler } from '../handler.ts'
import { refusal } from '../refusal.ts'
import { SaslFailure } from '../sasl-failure.ts'

type Response = ResponseInputOf<typeof api>

export const saslAuthenticate: Handler = handler(api, ({ authBytes }, { session }, world) => {
  const sasl = session?.sasl
  if (session === undefined || sasl === undefined || session.authenticated) {
    return failed(KAFKA_ERRORS.ILLEGAL_SASL_STATE, 'nothing is to be shown here')
  }
  const { ctx } = world.parts
  if (!sasl.expectsToken) {
    const why = 'SaslHandshake comes first'
    return refusal(session, ctx, why).then(() => failed(KAFKA_ERRORS.ILLEGAL_SASL_STATE, why))
  }
  try {
    return { errorCode: KAFKA_ERRORS.NONE, errorMessage: null, authBytes: sasl.token(authBytes) }
  } catch (error) {
    if (!(error instanceof SaslFailure)) throw error
    const why = `authentication failed: ${error.message}`
    return refusal(session, ctx, error.message).then(() =>
      failed(KAFKA_ERRORS.SASL_AUTHENTICATION_FAILED, why),
    )
  }
})

function failed(errorCode: number, errorMessage: string): Response {
  return { errorCode, errorMessage, authBytes: new Uint8Array(0) }
}
