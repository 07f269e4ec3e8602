/**
 * SaslHandshake: names the mechanism by which a client will show who it is (KIP-43).
 *
 * After version 1 the tokens are in SaslAuthenticate (KIP-152). After version 0 they are sent as they are, with nothing
 * but their length, until the client is believed; one that is not is told nothing, and its connection closed.
 *
 * An unknown mechanism is answered with those that there are, and ends the connection, as does a handshake out of
 * order. Where nobody has to show anything, every handshake is out of order.
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { saslHandshake as api } from '../../wire/messages/17-sasl-handshake.ts'
import { WireWriter } from '../../wire/writer.ts'
import { type Answer, Disconnect, type Handler, handler } from '../handler.ts'
import { refusal } from '../refusal.ts'
import type { SaslSession } from '../sasl.ts'
import { SaslFailure } from '../sasl-failure.ts'
import type { Session } from '../session.ts'
import type { World } from '../world.ts'

type Response = ResponseInputOf<typeof api>

const SINCE_AUTHENTICATE = 1
const OUT_OF_ORDER: Response = { errorCode: KAFKA_ERRORS.ILLEGAL_SASL_STATE, mechanisms: [] }

export const saslHandshake: Handler = handler(api, ({ mechanism }, { version, session }, world) => {
  const sasl = session?.sasl
  if (session === undefined || sasl === undefined) return OUT_OF_ORDER
  const { mechanisms } = sasl
  switch (sasl.handshake(mechanism)) {
    case 'named':
      if (version < SINCE_AUTHENTICATE) session.tokens = tokensOf(session, sasl, world)
      return { errorCode: KAFKA_ERRORS.NONE, mechanisms }
    case 'unknown mechanism':
      return refused(session, world, { errorCode: KAFKA_ERRORS.UNSUPPORTED_SASL_MECHANISM, mechanisms })
    case 'out of order':
      return session.authenticated ? OUT_OF_ORDER : refused(session, world, OUT_OF_ORDER)
  }
})

async function refused(session: Session, world: World, response: Response): Promise<Response> {
  await refusal(session, world.parts.ctx, 'the handshake is not one that can be answered')
  return response
}

function tokensOf(session: Session, sasl: SaslSession, { parts: { ctx } }: World) {
  return (frame: Uint8Array): Answer<readonly Uint8Array[]> => {
    try {
      const answer = framed(sasl.token(frame))
      if (sasl.isOver) session.tokens = undefined
      return answer
    } catch (error) {
      if (!(error instanceof SaslFailure)) throw error
      return refusal(session, ctx, error.message).then(() => {
        throw new Disconnect('the client has not shown who it is')
      })
    }
  }
}

function framed(token: Uint8Array): readonly Uint8Array[] {
  const to = new WireWriter()
  to.startFrame()
  to.bytes(token)
  return to.finishFrame()
}
