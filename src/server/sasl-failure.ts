/** Why a client was not believed: what it is told, and the log. It never says whether there is such a user. */
export class SaslFailure extends Error {
  override readonly name = 'SaslFailure'
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @throws SaslFailure */
export function utf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new SaslFailure('a message is no UTF-8')
  }
}
