/**
 * Walks the entries of groups that were found (journal-reader.ts), in order, through a window on their files. What is told
 * of a batch is where it lies in the window, so the walk pauses before that is moved on.
 */
import { DamagedFile } from './damage.ts'
import { FileWindow, WINDOW_BYTES } from './file-window.ts'
import type { FileSystem } from './fs.ts'
import {
  ENTRY_HEADER_BYTES,
  type EntryVisitor,
  entryEnd,
  GROUP_HEADER_BYTES,
  LogIds,
  visitEntry,
} from './group.ts'
import type { Group } from './journal-reader.ts'

/**
 * Tells `visitor` of all entries. Each time it pauses, it answers the file that it has told of since the last time, whose
 * bytes are good until it goes on.
 * @throws OdradekError CORRUPT_LOG where an entry is nonsense though the CRC of its group held: no disk does that, another
 * program may. STORAGE_ERROR
 */
export async function* walkEntries(
  fs: FileSystem,
  groups: readonly Group[],
  visitor: EntryVisitor,
  windowBytes: number = WINDOW_BYTES,
): AsyncGenerator<string> {
  const ids = new LogIds()
  let window: FileWindow | undefined
  try {
    for (const group of groups) {
      if (window?.path !== group.file) {
        if (window !== undefined) yield window.path
        await window?.close()
        window = await FileWindow.open(fs, group.file, windowBytes)
      }
      const end = group.position + group.sizeBytes
      for (let at = group.position + GROUP_HEADER_BYTES; at < end; ) {
        if (!window.shows(at, at + ENTRY_HEADER_BYTES)) {
          yield window.path
          await window.move(at, at + ENTRY_HEADER_BYTES)
        }
        const next = entryEnd(window.bytes, at - window.at) + window.at
        if (next <= end && !window.shows(at, next)) {
          yield window.path
          await window.move(at, next)
        }
        const told =
          window.shows(at, next) &&
          next <= end &&
          visitEntry(window.bytes, at - window.at, next - window.at, at, ids, visitor)
        if (!told) throw nonsense(window, at)
        at = next
      }
    }
    if (window !== undefined) yield window.path
  } finally {
    await window?.close()
  }
}

function nonsense({ path, at, bytes }: FileWindow, position: number): DamagedFile {
  const what = `the entry, of kind ${bytes[position - at]}, is none that this version writes`
  return new DamagedFile(path, { position, what }, `${path}, position ${position}: ${what}`)
}
