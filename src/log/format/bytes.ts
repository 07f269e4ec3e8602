/** The pieces in a row: the only one itself, else a copy. */
export function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces
  if (only !== undefined && pieces.length === 1) return only
  let sizeBytes = 0
  for (const piece of pieces) sizeBytes += piece.length
  const bytes = new Uint8Array(sizeBytes)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
