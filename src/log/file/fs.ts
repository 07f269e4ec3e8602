/**
 * The seam between the file engine and the disk: the few operations that it needs, and no more, so that a
 * simulated disk can be as strict as the worst real one. Paths are relative to the data directory, with '/'.
 *
 *   bytes are safe            after `DataFile.sync`
 *   a name is safe            after `syncDirectory` of the directory that holds it: created, renamed, removed
 *
 * Neither implies the other. A failure is always an OdradekError with the system's error as its cause:
 * STORAGE_FULL when room would help, else STORAGE_ERROR. After a failed `sync` nothing is known about what was
 * written since the last good one, also when a later `sync` succeeds: the kernel forgets what it could not write.
 */
import { OdradekError } from '../../model/errors.ts'

/** `read`: existing. `write`: existing, for reading and writing. `create`: new, and an error when it is there. */
export type OpenMode = 'read' | 'write' | 'create'

export interface DataFile {
  /** Fills `into` from `position`; answers how many bytes. Short only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes all of it: a short write of the system's is continued. On an error any part may be there. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /** Writes the pieces in a row, all of them. */
  writeAll(pieces: readonly Uint8Array[], position: number): Promise<void>
  /** Resolves when every byte, and the size, is on the disk. */
  sync(): Promise<void>
  /** Cuts the file, or extends it with zeros. */
  truncate(sizeBytes: number): Promise<void>
  size(): Promise<number>
  /** Harmless when closed. Syncs nothing. */
  close(): Promise<void>
}

export interface FileSystem {
  open(path: string, mode: OpenMode): Promise<DataFile>
  /** The names in a directory, sorted; none when there is no such directory. */
  list(directory: string): Promise<string[]>
  /** With its parents; harmless when it is there. */
  makeDirectory(path: string): Promise<void>
  /** Replaces what is at `to`. */
  rename(from: string, to: string): Promise<void>
  /** Harmless when it is gone. Open handles of the file go on working. */
  remove(path: string): Promise<void>
  /** Only an empty one; harmless when it is gone. */
  removeDirectory(path: string): Promise<void>
  syncDirectory(path: string): Promise<void>
  exists(path: string): Promise<boolean>
}

export type Operation = keyof typeof VERBS

/** How a message names what was tried. */
const VERBS = {
  open: 'open',
  read: 'read',
  write: 'write to',
  sync: 'sync',
  truncate: 'cut',
  size: 'measure',
  close: 'close',
  list: 'list',
  makeDirectory: 'make the directory',
  rename: 'rename',
  remove: 'remove',
  removeDirectory: 'remove the directory',
  syncDirectory: 'sync the directory',
  exists: 'look for',
  lock: 'lock',
} as const

/** What a failure of the system carries besides its text. */
interface SystemError {
  readonly code?: unknown
}

/** Failures that freed space mends. EFBIG: the file system's, or the user's, limit for one file. */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'free space on the disk, or lower the retention',
  EDQUOT: 'free space within the quota, or raise it',
  EFBIG: 'raise the limit for the size of a file',
  EIO: 'look at the health of the disk, and reopen the directory',
  EROFS: 'mount the file system for writing',
  EACCES: 'give the process access to the data directory',
  EPERM: 'give the process access to the data directory',
  EMFILE: 'raise the limit of open files of the process (ulimit -n)',
  ENFILE: 'raise the limit of open files of the system',
  ENOENT: 'restore the file: something else removed it',
  EEXIST: 'remove the file: something else made it',
  ENAMETOOLONG: 'use a shorter path for the data directory',
  ENOTDIR: 'use a path whose parents are directories',
}

/** The error of the seam for a failure of the system's: what was done, to which path, what helps. */
export function storageError(operation: Operation, path: string, cause: unknown): OdradekError {
  const code = systemCode(cause)
  const advice = code === undefined ? undefined : ADVICE[code]
  return new OdradekError(
    FULL.has(code) ? 'STORAGE_FULL' : 'STORAGE_ERROR',
    `cannot ${VERBS[operation]} ${path === '' ? '.' : path}: ${code ?? 'the file system failed'}` +
      `${advice === undefined ? '' : `; ${advice}`}`,
    { cause },
  )
}

/** The system's code (`ENOENT`) of an error, or of its cause. */
export function systemCode(error: unknown): string | undefined {
  const own = (error as SystemError | null | undefined)?.code
  if (error instanceof OdradekError) return systemCode(error.cause)
  return typeof own === 'string' ? own : undefined
}

/** Whether a file or directory is not there. */
export function isMissing(error: unknown): boolean {
  return systemCode(error) === 'ENOENT'
}

/** What comes of work with a file or directory, `undefined` where that is not there. */
export async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Whether the process, or the system, has too many open files: closing some helps. */
export function isOutOfHandles(error: unknown): boolean {
  const code = systemCode(error)
  return code === 'EMFILE' || code === 'ENFILE'
}

/** The directory that holds `path`: '' is the data directory itself. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0))
}

/** A name that is safe in a path of any file system: all but ASCII letters, digits, '_' and '-' is escaped. */
export function encodeName(text: string): string {
  let name = ''
  for (const byte of new TextEncoder().encode(text)) {
    const char = String.fromCharCode(byte)
    name += /[\w-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return name
}

/** The text whose name this is; undefined for a name that none has. */
export function decodeName(name: string): string | undefined {
  try {
    const text = decodeURIComponent(name)
    return encodeName(text) === name ? text : undefined
  } catch {
    // Bytes that are no UTF-8.
    return undefined
  }
}

/** How many bytes the pieces are together. */
export function totalBytes(pieces: readonly Uint8Array[]): number {
  let sizeBytes = 0
  for (const piece of pieces) sizeBytes += piece.length
  return sizeBytes
}
