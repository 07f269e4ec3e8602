/** Finds the data directory that a command line names, and who is at work in it. Nothing in it is changed. */
import { stat } from 'node:fs/promises'
import { isDataDirectory } from '../log/file/data-directory.ts'
import { storageError, systemCode } from '../log/file/fs.ts'
import { NodeFileSystem } from '../log/file/fs-node.ts'
import type { DirectoryOptions } from '../log/file/inspect.ts'
import { type LockOwner, lockOwner } from '../log/file/lock-node.ts'
import { loadCrc32c } from '../node/crc32c.ts'
import type { Words } from './arguments.ts'
import { UsageError } from './command.ts'

/** What is beside the options of a command that looks at one. */
export const DIRECTORY: Words = { min: 1, max: 1, what: 'a data directory' }

export interface Found extends DirectoryOptions {
  readonly path: string
  readonly owner: LockOwner | undefined
}

/** @throws UsageError where there is no data directory, OdradekError STORAGE_ERROR where it cannot be read */
export async function findDirectory(path: string): Promise<Found> {
  if (!(await isDirectory(path))) throw new UsageError(`${path} is no directory`)
  const fs = new NodeFileSystem(path)
  if (!(await isDataDirectory(fs))) {
    throw new UsageError(
      `${path} is no data directory of Odradek: it has neither a checkpoint nor a journal nor logs`,
    )
  }
  const owner = await lockOwner(path)
  return { path, fs, owner, moving: owner !== undefined, crc32c: await loadCrc32c() }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return false
    throw storageError('exists', path, error)
  }
}

/** `process 4711 on host since 2026-01-01T00:00:00.000Z` */
export function ownerText({ pid, host, sinceMs }: LockOwner): string {
  return `process ${pid} on ${host} since ${new Date(sinceMs).toISOString()}`
}
