/** Opens a broker on a data directory: the file engine with what only Node has for it. */
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Broker, type BrokerOptions, type BrokerPlugs, type TopicMap } from '../broker.ts'
import { count, flag, invalid, oneOf, positive } from '../core/settings.ts'
import { closeQuietly } from '../log/file/close-all.ts'
import { foreignNames } from '../log/file/data-directory.ts'
import {
  FILE_DEFAULTS,
  type FileEngineContext,
  type FileEngineOptions,
  fileEngine,
} from '../log/file/file-engine.ts'
import { NodeFileSystem } from '../log/file/fs-node.ts'
import { MAX_FILE_BYTES } from '../log/file/journal.ts'
import { type DirectoryLock, lockDirectory } from '../log/file/lock-node.ts'
import { SystemClock } from '../model/clock.ts'
import { KiB } from '../model/limits.ts'
import { lazyCompression } from './compression.ts'
import { lazyCrc32c } from './crc32c.ts'

/** Less would take hardly a record: a group has a quarter of it. More than `MAX_FILE_BYTES` could not be read back. */
const MIN_JOURNAL_BYTES = 64 * KiB
/** Of the others nothing depends on; whoever says less means MiB. */
const MIN_BYTES = KiB

/**
 * @throws OdradekError INVALID_ARGUMENT, DATA_LOCKED, CORRUPT_LOG, STORAGE_ERROR, STORAGE_FULL
 */
export async function openFiles<Map extends object = TopicMap>(
  url: string,
  options: BrokerOptions,
  files: FileEngineOptions,
  plugs: BrokerPlugs,
): Promise<Broker<Map>> {
  const path = pathOf(url)
  const checked = checkedOptions(files)
  const fs = await NodeFileSystem.at(path)
  await checkNobodyElses(path, fs)
  const lock = await lockDirectory(path)
  const clock = options.clock ?? new SystemClock()
  const early: [error: unknown, what: string][] = []
  let report = (error: unknown, what: string): void => void early.push([error, what])
  const context: FileEngineContext = {
    clock,
    fs,
    crc32c: lazyCrc32c(),
    compression: lazyCompression(),
    release: () => lock.release(),
    report: (error, what) => report(error, what),
  }
  const engine = await orRelease(fileEngine(context, checked), lock)
  try {
    const broker = new Broker<Map>(engine, { ...options, clock }, plugs)
    report = (error, what) => broker.report(error, what)
    for (const each of early) report(...each)
    await broker.restore()
    return broker
  } catch (error) {
    await closeQuietly([() => engine.close()])
    throw error
  }
}

/** Whoever mistypes a path must not find a broker's files among other ones. */
async function checkNobodyElses(path: string, fs: NodeFileSystem): Promise<void> {
  const [first, ...others] = await foreignNames(fs)
  if (first === undefined) return
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  throw invalid(
    `${path} is not empty and no data directory of Odradek: it holds ${first}${more}; ` +
      `name one of its own, such as ${join(path, 'odradek')}`,
  )
}

async function orRelease<T>(opening: Promise<T>, lock: DirectoryLock): Promise<T> {
  try {
    return await opening
  } catch (error) {
    await closeQuietly([() => lock.release()])
    throw error
  }
}

/** `file:./data` is relative to the working directory, `file:///var/data` a URL as any other. */
function pathOf(url: string): string {
  const path = url.slice('file:'.length)
  if (path === '') throw invalid('a file URL names a directory, such as "file:./data"')
  if (path.startsWith('//')) {
    try {
      return fileURLToPath(url)
    } catch {
      throw invalid(`"${url}" is no path on this machine; try "file:./data"`)
    }
  }
  return resolve(path)
}

function checkedOptions(files: FileEngineOptions): FileEngineOptions {
  const { durability, flushMs, salvage, journalBytes, segmentBytes, cacheBytes } = FILE_DEFAULTS
  return {
    durability: oneOf('durability', files.durability, ['fsync', 'os'], durability),
    flushMs: positive('flushMs', files.flushMs, flushMs),
    salvage: flag('salvage', files.salvage, salvage),
    journalBytes: size('journalBytes', files.journalBytes, journalBytes, MIN_JOURNAL_BYTES, MAX_FILE_BYTES),
    segmentBytes: size('segmentBytes', files.segmentBytes, segmentBytes, MIN_BYTES),
    cacheBytes: size('cacheBytes', files.cacheBytes, cacheBytes, MIN_BYTES),
  }
}

function size(
  name: string,
  value: number | undefined,
  otherwise: number,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): number {
  const sizeBytes = count(name, value, otherwise)
  if (sizeBytes < least) throw invalid(`${name} is in bytes, ${least} at least; got ${sizeBytes}`)
  if (sizeBytes > most) throw invalid(`${name} is in bytes, ${most} at most; got ${sizeBytes}`)
  return sizeBytes
}
