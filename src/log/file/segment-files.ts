/**
 * What segments say by themselves, where no checkpoint tells of them: names say which log and which first offset, the
 * footer of a sealed one says the rest. Of an active one no more is known than how long its file is.
 */
import type { Crc32c } from '../format/crc32c.ts'
import type { StoredSegment } from './checkpoint.ts'
import type { FileSystem } from './fs.ts'
import type { LogId } from './group.ts'
import { decodeFooter, FOOTER_BYTES } from './segment-footer.ts'
import { directoryOf, LOGS_DIRECTORY, logOf, nameOf } from './segment-paths.ts'

export interface LogOnDisk {
  readonly id: LogId
  /** `next` is `base`, and the size that of the file, where it is not sealed. */
  readonly segments: readonly StoredSegment[]
}

/** Every directory that has a log's name. */
export async function logsOnDisk(fs: FileSystem, crc32c: Crc32c): Promise<LogOnDisk[]> {
  const logs: LogOnDisk[] = []
  for (const name of await fs.list(LOGS_DIRECTORY)) {
    const id = logOf(name)
    if (id === undefined) continue
    const segments: StoredSegment[] = []
    for (const file of await fs.list(directoryOf(id))) {
      const name = nameOf(file)
      if (name === undefined || !file.endsWith('.log')) continue
      segments.push(await readSegment(fs, crc32c, `${directoryOf(id)}/${file}`, name))
    }
    logs.push({ id, segments: segments.filter((each) => !segments.some((other) => replaces(other, each))) })
  }
  return logs
}

/** It was whole when its file got a footer, and from then on the other one was only to be removed. */
function replaces(one: StoredSegment, other: StoredSegment): boolean {
  const newer = (one.generation ?? 0) > (other.generation ?? 0)
  return newer && one.sealed && one.base <= other.base && other.base < one.next
}

async function readSegment(
  fs: FileSystem,
  crc32c: Crc32c,
  path: string,
  { base, generation }: { readonly base: number; readonly generation: number },
): Promise<StoredSegment> {
  const file = await fs.open(path, 'read')
  try {
    const sizeBytes = await file.size()
    const end = new Uint8Array(Math.min(FOOTER_BYTES, sizeBytes))
    await file.read(end, sizeBytes - end.length)
    const footer = decodeFooter(end, crc32c)
    const name = generation === 0 ? {} : { generation }
    return footer?.base === base && footer.sizeBytes === sizeBytes - FOOTER_BYTES
      ? { ...footer, ...name, sealed: true }
      : { base, next: base, sizeBytes, maxTimestamp: -1, crc: 0, ...name, sealed: false }
  } finally {
    await file.close()
  }
}
