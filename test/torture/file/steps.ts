/**
 * The steps of the file engine, as the seam to the disk sees them, by name: what is done, to what kind of file. A
 * process can be made to die at the n-th time it comes to one: before it, after it and before anybody hears of it, or
 * in its middle. It is the process's own `NodeFileSystem` that is changed, so everything above it is as in production.
 */
import process from 'node:process'
import type { DataFile, FileSystem, OpenMode, Operation } from '../../../src/log/file/fs.ts'
import { totalBytes } from '../../../src/log/file/fs.ts'
import { NodeFile, NodeFileSystem } from '../../../src/log/file/fs-node.ts'

/** Where a process dies. */
export interface Strike {
  readonly step: string
  /** Which time it comes to that step, from 1, counted from its start. */
  readonly nth: number
  readonly when: 'before' | 'after' | 'torn'
}

/** Every step that changes what a later process finds. `torn` is for writes. */
export const STEPS = [
  'make the directory journal',
  'make the directory log',
  'make the directory torn',
  'create journal',
  'create checkpoint',
  'create segment',
  'create index',
  'create torn',
  'write journal',
  'write checkpoint',
  'write segment',
  'write index',
  'write torn',
  'sync journal',
  'sync checkpoint',
  'sync segment',
  'sync torn',
  'truncate segment',
  'rename checkpoint',
  'remove checkpoint',
  'remove segment',
  'remove index',
  'remove torn',
  'remove directory log',
  'sync directory root',
  'sync directory journal',
  'sync directory logs',
  'sync directory log',
  'sync directory torn',
] as const

const VERBS: { readonly [operation in Operation]?: string } = {
  makeDirectory: 'make the directory',
  write: 'write',
  sync: 'sync',
  truncate: 'truncate',
  rename: 'rename',
  remove: 'remove',
  removeDirectory: 'remove directory',
  syncDirectory: 'sync directory',
}

function kindOf(path: string): string {
  if (path === '') return 'root'
  if (path.startsWith('checkpoint')) return 'checkpoint'
  const [top, , file] = path.split('/')
  if (top !== 'logs') return top as string
  if (file === undefined) return path === 'logs' ? 'logs' : 'log'
  return file.includes('.index') ? 'index' : 'segment'
}

/** What is done at a step, `part` a share of it. */
interface Act<T> {
  readonly whole: () => Promise<T>
  readonly part?: () => Promise<unknown>
}

export class Steps {
  readonly counts: { [step: string]: number } = {}
  readonly #strike: Strike | undefined
  readonly #struck: (step: string) => void

  /** `struck` is called right before the end. */
  constructor(strike: Strike | undefined, struck: (step: string) => void) {
    this.#strike = strike
    this.#struck = struck
  }

  /** From here on, this process dies where it was told to. */
  install(): void {
    const { prototype: fs } = NodeFileSystem
    const { prototype: file } = NodeFile
    const paths = new WeakMap<object, string>()
    const steps = this
    const { open, rename, remove, removeDirectory, makeDirectory, syncDirectory } = fs
    fs.open = async function (path: string, mode: OpenMode): Promise<DataFile> {
      const opening = (): Promise<DataFile> => open.call(this, path, mode)
      const opened =
        mode === 'create' ? await steps.#at(`create ${kindOf(path)}`, { whole: opening }) : await opening()
      paths.set(opened, path)
      return opened
    }
    fs.rename = function (from, to) {
      return steps.#step('rename', to, { whole: () => rename.call(this, from, to) })
    }
    const named = { remove, removeDirectory, makeDirectory, syncDirectory }
    for (const [operation, original] of Object.entries(named) as [
      keyof typeof named,
      FileSystem['remove'],
    ][]) {
      fs[operation] = function (path) {
        return steps.#step(operation, path, { whole: () => original.call(this, path) })
      }
    }
    const { write, writeAll, sync, truncate } = file
    file.write = function (bytes, position) {
      return steps.#step('write', paths.get(this) as string, {
        whole: () => write.call(this, bytes, position),
        part: () => write.call(this, bytes.subarray(0, bytes.length >> 1), position),
      })
    }
    file.writeAll = function (pieces, position) {
      return steps.#step('write', paths.get(this) as string, {
        whole: () => writeAll.call(this, pieces, position),
        part: () => writeAll.call(this, halfOf(pieces), position),
      })
    }
    file.sync = function () {
      return steps.#step('sync', paths.get(this) as string, { whole: () => sync.call(this) })
    }
    file.truncate = function (sizeBytes) {
      return steps.#step('truncate', paths.get(this) as string, {
        whole: () => truncate.call(this, sizeBytes),
      })
    }
  }

  #step<T>(operation: Operation, path: string, act: Act<T>): Promise<T> {
    return this.#at(`${VERBS[operation]} ${kindOf(path)}`, act)
  }

  async #at<T>(step: string, { whole, part }: Act<T>): Promise<T> {
    const count = (this.counts[step] ?? 0) + 1
    this.counts[step] = count
    const { step: struck, nth, when } = this.#strike ?? {}
    if (struck !== step || nth !== count) return whole()
    if (when === 'after') await whole()
    if (when === 'torn') await part?.()
    this.#struck(`${step} (${when})`)
    process.kill(process.pid, 'SIGKILL')
    return new Promise<never>(() => {})
  }
}

/** The first half of the bytes. */
function halfOf(pieces: readonly Uint8Array[]): Uint8Array[] {
  const half: Uint8Array[] = []
  let left = totalBytes(pieces) >> 1
  for (const piece of pieces) {
    half.push(piece.subarray(0, Math.min(left, piece.length)))
    left -= Math.min(left, piece.length)
  }
  return half.filter(({ length }) => length > 0)
}

/**
 * Negative control: a journal that says at once that it was written, and synced, and writes when it finds the time. A
 * broker on it acknowledges what a kill can still take.
 */
export function lie(delayMs: number): void {
  const { prototype: file } = NodeFile
  const { prototype: fs } = NodeFileSystem
  const { open } = fs
  const journal = new WeakSet<object>()
  fs.open = async function (path, mode) {
    const opened = await open.call(this, path, mode)
    if (path.startsWith('journal/')) journal.add(opened)
    return opened
  }
  const { writeAll, sync } = file
  file.writeAll = async function (pieces, position) {
    if (!journal.has(this)) return writeAll.call(this, pieces, position)
    const copies = pieces.map((piece) => piece.slice())
    setTimeout(() => void writeAll.call(this, copies, position).catch(() => undefined), delayMs)
  }
  file.sync = async function () {
    if (!journal.has(this)) return sync.call(this)
  }
}
