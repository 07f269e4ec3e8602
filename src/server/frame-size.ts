/**
 * Whether the first four bytes of a request are a length that can be one. Where they are not, somebody at the other
 * end has mostly made a mistake that has a name: an HTTP request, or a TLS handshake, on a port of Kafka's protocol.
 */
import { OdradekError } from '../model/errors.ts'

const TLS = 'a TLS handshake on a plaintext port: the client has TLS on, this listener has not'
const HTTP = "an HTTP request, on a port of Kafka's protocol"
const HTTP_METHODS: ReadonlySet<string> = new Set([
  'GET ',
  'PUT ',
  'HEAD',
  'POST',
  'OPTI',
  'PATC',
  'DELE',
  'CONN',
])

/** `by`: what the bound is, for people. @throws OdradekError PROTOCOL_ERROR */
export function checkSize(sizeBytes: number, maxBytes: number, by: string): void {
  if (sizeBytes >= 0 && sizeBytes <= maxBytes) return
  const stranger = strangerOf(sizeBytes)
  const why =
    stranger !== undefined
      ? `this looks like ${stranger}`
      : sizeBytes < 0
        ? `a request of ${sizeBytes} bytes: this is not Kafka's protocol`
        : `a request of ${sizeBytes} bytes; at most ${maxBytes} are taken (${by})`
  throw new OdradekError('PROTOCOL_ERROR', why)
}

/** What speaks like this, if it is known: the bytes are its first ones. */
function strangerOf(first: number): string | undefined {
  // A record of type handshake (22), of SSL 3 or TLS (3).
  if (first >>> 16 === 0x1603) return TLS
  const text = String.fromCharCode(first >>> 24, (first >>> 16) & 0xff, (first >>> 8) & 0xff, first & 0xff)
  if (HTTP_METHODS.has(text)) return HTTP
  return text === 'SSH-' ? "a client of SSH, on a port of Kafka's protocol" : undefined
}
