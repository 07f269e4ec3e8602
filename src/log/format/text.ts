/**
 * UTF-8 for short strings. Keys and headers are a few bytes long, where a call of TextEncoder or TextDecoder
 * costs more than the work: ASCII is done by hand, the rest by them. Lone surrogates become U+FFFD, as
 * everywhere on the web.
 */
export { utf8Length } from '../../model/record.ts'

const encoder = new TextEncoder()
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

/** Longest text written and read by hand; concatenation loses to the decoder early. */
const SHORT_WRITE = 24
const SHORT_READ = 12

/** Writes `text`, for which there is room; answers the position after it. */
export function writeUtf8(out: Uint8Array, at: number, text: string): number {
  if (text.length <= SHORT_WRITE) {
    let i = 0
    while (i < text.length) {
      const unit = text.charCodeAt(i)
      if (unit >= 0x80) break
      out[at + i++] = unit
    }
    if (i === text.length) return at + i
  }
  return at + encoder.encodeInto(text, out.subarray(at)).written
}

/** The text of `bytes` from `start` to `end`, with U+FFFD for what is not UTF-8. */
export function readUtf8(bytes: Uint8Array, start: number, end: number): string {
  return shortAscii(bytes, start, end) ?? lenient.decode(bytes.subarray(start, end))
}

/** The text of the bytes where they are well-formed UTF-8, else a view of the bytes. */
export function textOrBytes(bytes: Uint8Array, start: number, end: number): string | Uint8Array {
  const text = shortAscii(bytes, start, end)
  if (text !== undefined) return text
  const view = bytes.subarray(start, end)
  try {
    return strict.decode(view)
  } catch {
    return view
  }
}

function shortAscii(bytes: Uint8Array, start: number, end: number): string | undefined {
  if (end - start > SHORT_READ) return undefined
  let text = ''
  for (let i = start; i < end; i++) {
    const unit = bytes[i] as number
    if (unit >= 0x80) return undefined
    text += String.fromCharCode(unit)
  }
  return text
}
